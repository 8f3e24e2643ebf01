"""Data loaders side by side: compare_loaders.py beside this folder runs them."""
from . import from_patchbay, from_slides, from_stores, from_tiles, from_volumes  # noqa: F401  (each adds its loaders)
