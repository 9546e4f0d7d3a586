from ..shapes import *
