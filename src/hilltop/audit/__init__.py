"""The audit: likely missing labels are ranked, reviewed in a browser and written back.

What is exported loads when first used: serving the review page needs no torch.
"""

from hilltop.lazy_imports import lazy_imports

__getattr__, __dir__, __all__ = lazy_imports(
    __name__, __file__, renamed={"plant_pairs": "add_gold_questions"}
)
