"""mercer studio: a local page where you move points and see the exact machine of each position.

``mercer studio`` starts it. `studio_app` is the same as a Starlette application, `StudioWidget` a widget for Jupyter.
All answers come from `mercer.studio.answers`, which needs neither.
"""

from typing import Any

__all__ = ["StudioWidget", "studio_app"]


def __getattr__(name: str) -> Any:
    if name == "studio_app":
        from mercer.studio.server import studio_app

        return studio_app
    if name == "StudioWidget":
        from mercer.studio.widget import StudioWidget

        return StudioWidget
    raise AttributeError(f"module 'mercer.studio' has no attribute {name!r}")
