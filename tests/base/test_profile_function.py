"""Profile functions that several threads install at once."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from graphc.base.profile_function import set_profile

# In a process of its own: an audit hook cannot be removed.
_THREADS_THAT_INSTALL = textwrap.dedent(
    """
    import sys, threading, time
    from concurrent.futures import ThreadPoolExecutor
    from graphc.base.profile_function import set_profile

    met = []

    def hook(event, arguments):
        if event == "sys.setprofile":
            met.append(threading.get_ident())
            time.sleep(0.001)  # Another thread runs in the middle of the installation.

    def profile(frame, event, argument):
        pass

    def install(_):
        for _ in range(20):
            set_profile(profile)
            assert sys.getprofile() is profile
            set_profile(None)
            assert sys.getprofile() is None

    sys.addaudithook(hook)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(install, range(4)))
    assert len(met) >= 160
    """
)


def test_threads_install_profile_functions_at_once():
    ended = subprocess.run([sys.executable, "-c", _THREADS_THAT_INSTALL], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_the_profile_function_of_a_thread_is_replaced_and_removed():
    seen = []
    before = sys.getprofile()

    set_profile(lambda frame, event, argument: seen.append(event))
    try:
        textwrap.dedent(" a")
    finally:
        set_profile(before)
    assert "call" in seen and sys.getprofile() is before
