"""Shapes of all parameters of the models of `dgc bench dgc`, in order. Needs no PyTorch."""


def ptb_lstm_shapes():
    """Two layers of 1500, tied embedding of 10,000 words, two biases per gate set; 51,034,000 elements."""
    layer = [(6000, 1500), (6000, 1500), (6000,), (6000,)]
    return [(10000, 1500)] + 2 * layer + [(10000,)]


def deep_speech_shapes():
    """Two convolutions, seven bidirectional GRUs of 1200 without biases, BatchNorm, 29 characters; 117,461,168 elements."""
    shapes = [(32, 1, 41, 11), (32,), (32,), (32,), (32, 32, 21, 11), (32,), (32,), (32,)]
    for inputs in (672, *6 * (1200,)):
        shapes += 2 * [(3600, inputs), (3600, 1200)] + [(1200,), (1200,)]
    return shapes + [(29, 1200)]


def resnet50_shapes(classes=1000):
    """Every parameter's shape in order; 25,557,032 elements."""
    shapes = [(64, 3, 7, 7), (64,), (64,)]
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for shape in ((width, inputs, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)):
                shapes += [shape, (shape[0],), (shape[0],)]
            if block == 0:
                shapes += [(4 * width, inputs, 1, 1), (4 * width,), (4 * width,)]
            inputs = 4 * width
    return shapes + [(classes, 2048), (classes,)]


SHAPES = {"resnet50": resnet50_shapes, "ptb_lstm": ptb_lstm_shapes, "deep_speech": deep_speech_shapes}
