"""A bar with the time left on standard error, for what takes longer than five seconds."""

import sys

_QUIET_SECONDS = 5


class Progress:
    """Counts jobs of `title`; how many there will be may change on the way."""

    def __init__(self, title: str, jobs: int) -> None:
        try:
            from tqdm import tqdm
        except ImportError:
            tqdm = None
        self._bar = tqdm and tqdm(total=jobs, desc=title, unit="job", delay=_QUIET_SECONDS, file=sys.stderr, disable=None,
                                dynamic_ncols=True, leave=False)
        if self._bar is None:
            print(f"{title}: {jobs} jobs or more (python3-tqdm would show how long it takes)", file=sys.stderr)

    def begins(self, name: str) -> None:
        """A job of that name begins."""
        if self._bar is not None:
            self._bar.set_postfix_str(name, refresh=False)

    def ended(self) -> None:
        """It has ended."""
        if self._bar is not None:
            self._bar.update()

    def left(self, jobs: int) -> None:
        """So many jobs are still to come."""
        if self._bar is not None:
            self._bar.total = self._bar.n + jobs

    def close(self) -> None:
        """Clears the line."""
        if self._bar is not None:
            self._bar.close()
