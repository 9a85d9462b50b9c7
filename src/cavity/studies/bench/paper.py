"""What the paper measured: Lucibello, Pittorino, Perugini and Zecchina, *Deep learning via message passing algorithms
based on belief propagation* (2022), seconds per epoch of 784-101-101-1 on Fashion-MNIST with one RTX 2080 Ti."""

NETWORK = (784, 101, 101, 1)
MACHINE = "RTX 2080 Ti"
BATCH_SIZES = (1, 16, 128, 1024)
#: Algorithm → seconds per epoch, one for each batch size.
SECONDS_PER_EPOCH = {
    "binarynet": (48.0, 3.0, 0.45, 0.2),
    "bp": (118.0, 7.5, 2.5, 2.5),
    "bpi": (91.0, 6.3, 1.2, 0.8),
    "amp": (104.0, 6.5, 0.8, 0.3),
    "mf": (96.0, 6.1, 0.7, 0.2),
}
