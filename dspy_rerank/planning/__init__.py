"""What a run over a data set will take: calls, tokens, money and hours, before any is spent."""

from .forecasting import Forecast, forecast
from .measuring import Measured, measure
from .ranges import Range

__all__ = ["Forecast", "Measured", "Range", "forecast", "measure"]
