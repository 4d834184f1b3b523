"""Models as C libraries: functions of C around native code, with header, demo and loader."""
