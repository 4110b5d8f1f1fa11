#!/usr/bin/env python3
"""What numpy finds in a file of `millrace predict --embeddings`; exit status 77 (skipped) without numpy.

    embeddings_numpy.py FILE        "NAME TYPE SHAPE" a line
"""
import sys

try:
    import numpy
except ImportError:
    print("skipped: python has no numpy")
    sys.exit(77)

with numpy.load(sys.argv[1]) as arrays:
    for name in arrays.files:
        array = arrays[name]
        if not numpy.isfinite(array).all():
            sys.exit("%s: not finite" % name)
        print(name, array.dtype, array.shape)
