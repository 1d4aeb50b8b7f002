"""The compiled CPU kernels and the functions that call them."""
