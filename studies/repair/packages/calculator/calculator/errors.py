class CalculatorError(Exception):
    """A formula that has no value."""


class ParseError(CalculatorError):
    def __init__(self, message, position):
        super().__init__(f"{message} at {position}")
        self.position = position


class EvaluationError(CalculatorError):
    pass
