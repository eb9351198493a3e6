"""The models of dgc in PyTorch, with torchvision's parameter names."""

import torch.nn as nn
import torch.nn.functional as F


class ZeroPaddedShortcut(nn.Module):
    """He et al. 2016, option A: every second pixel, zero channels half before and half behind. No parameters."""

    def __init__(self, more_channels):
        super().__init__()
        self.before = more_channels // 2
        self.behind = more_channels - self.before

    def forward(self, x):
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.before, self.behind))


def projection(inputs, outputs, stride):
    """Option B: 1x1 convolution and BatchNorm."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride, project):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = projection(inputs, outputs, stride) if project else ZeroPaddedShortcut(outputs - inputs)

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + shortcut)


def stage(inputs, outputs, blocks, stride, project):
    first = BasicBlock(inputs, outputs, stride, project)
    return nn.Sequential(first, *[BasicBlock(outputs, outputs, 1, project) for _ in range(blocks - 1)])


class CifarResNet(nn.Module):
    """Depth 6n + 2 for 32x32 images: 16, 32, 64 channels."""

    def __init__(self, depth=20, classes=10):
        super().__init__()
        n = (depth - 2) // 6
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        self.layer1 = stage(16, 16, n, 1, False)
        self.layer2 = stage(16, 32, n, 2, False)
        self.layer3 = stage(32, 64, n, 2, False)
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class ResNet18(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.layer1 = stage(64, 64, 2, 1, True)
        self.layer2 = stage(64, 128, 2, 2, True)
        self.layer3 = stage(128, 256, 2, 2, True)
        self.layer4 = stage(256, 512, 2, 2, True)
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Bottleneck(nn.Module):
    """1x1, 3x3 with the stride, 1x1 to four times the width."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU()
        self.downsample = projection(inputs, 4 * width, stride) if stride != 1 or inputs != 4 * width else None

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + shortcut)


class ResNet50(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        inputs = 64
        stages = []
        for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            stages.append(nn.Sequential(*[Bottleneck(inputs if b == 0 else 4 * width, width, stride if b == 0 else 1)
                                          for b in range(blocks)]))
            inputs = 4 * width
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(2048, classes)

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class AlexNet(nn.Module):
    """Caffe's, with two groups where the original was split over two GPUs."""

    def __init__(self, classes, features):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, 11, 4, 2)
        self.conv2 = nn.Conv2d(96, 256, 5, 1, 2, groups=2)
        self.conv3 = nn.Conv2d(256, 384, 3, 1, 1)
        self.conv4 = nn.Conv2d(384, 384, 3, 1, 1, groups=2)
        self.conv5 = nn.Conv2d(384, 256, 3, 1, 1, groups=2)
        self.fc6 = nn.Linear(features, 4096)
        self.fc7 = nn.Linear(4096, 4096)
        self.fc8 = nn.Linear(4096, classes)
        self.relu = nn.ReLU()
        self.norm = nn.LocalResponseNorm(5)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        x = F.max_pool2d(self.norm(self.relu(self.conv1(x))), 3, 2)
        x = F.max_pool2d(self.norm(self.relu(self.conv2(x))), 3, 2)
        x = self.relu(self.conv5(self.relu(self.conv4(self.relu(self.conv3(x))))))
        x = F.max_pool2d(x, 3, 2).flatten(1)
        x = self.drop(self.relu(self.fc6(x)))
        x = self.drop(self.relu(self.fc7(x)))
        return self.fc8(x)
