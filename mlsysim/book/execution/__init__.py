"""Chapters executed: kernels, cells and their outputs."""
