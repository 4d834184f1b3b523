"""Instructions of 32-bit RISC-V as steps."""

from __future__ import annotations

import re

from graphc.codegen.machine.riscv64.steps import Riscv

READER = Riscv(architecture="riscv32", word_bytes=4, filler=re.compile(rb"\x01\x00|\x13\x00\x00\x00"))
