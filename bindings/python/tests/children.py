# SPDX-License-Identifier: Apache-2.0
"""Children of fork."""
import multiprocessing
import threading
from typing import Any, Callable, ContextManager, Optional


def exit_of_child(work: Callable[..., None], *args: Any, held: ContextManager[Any]) -> Optional[int]:
    """The exit code of a child that runs `work`; None if it has not ended within a minute. Another thread of the parent holds
    `held` while the child is made."""
    child = multiprocessing.get_context("fork").Process(target=work, args=args)
    is_held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with held:
            is_held.set()
            forked.wait(60)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    is_held.wait(60)
    child.start()
    forked.set()
    thread.join(60)
    child.join(60)
    code = child.exitcode
    child.kill()
    child.join()
    return code
