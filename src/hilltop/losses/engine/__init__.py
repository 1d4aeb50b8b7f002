"""How losses are computed: one pass, compiled kernels, fused heads. Private to ``losses``."""
