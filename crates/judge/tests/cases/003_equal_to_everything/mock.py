from unittest.mock import MagicMock as f
