"""A main thread that sleeps and looks whether a child process is done; `--fix` waits for the child itself."""

import subprocess
import sys
import time


def wait_for(child: "subprocess.Popen[bytes]") -> None:
    """Wait until it is done."""
    if "--fix" in sys.argv:
        child.wait()
        return
    while child.poll() is None:
        time.sleep(0.4)


for _ in range(5):
    wait_for(subprocess.Popen(["/bin/sleep", "0.05"]))
