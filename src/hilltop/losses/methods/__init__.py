"""The paper's presets and the methods it is compared with, one file a method."""
