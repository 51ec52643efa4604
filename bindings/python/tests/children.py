# SPDX-License-Identifier: Apache-2.0
"""Children of fork."""
import multiprocessing
import threading
from typing import Any, Callable, ContextManager, Optional

# Seconds after which something hangs, also on a machine that is much too busy.
HANGS = 600


def exit_of_child(work: Callable[..., None], *args: Any, held: ContextManager[Any]) -> Optional[int]:
    """The exit code of a child that runs `work`; None if it hangs. Another thread of the parent holds `held` while the child is
    made."""
    child = multiprocessing.get_context("fork").Process(target=work, args=args)
    is_held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with held:
            is_held.set()
            forked.wait(HANGS)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    is_held.wait(HANGS)
    child.start()
    forked.set()
    thread.join(HANGS)
    child.join(HANGS)
    code = child.exitcode
    child.kill()
    child.join()
    return code
