"""Calibration: samples in, ranges of values out. The memory does not depend on the number of samples."""
import abc
import enum
import os
from typing import Any, Dict, ItemsView, Iterator, KeysView, Mapping, Optional, Sequence, Tuple, Union, ValuesView

import numpy as np

from ._work import work


class CalibrationMethod(enum.Enum):
    """MinMax takes one pass over the samples, the others two."""

    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(metaclass=abc.ABCMeta):
    """Gives the inputs of one run after the other. With a method `rewind()` it can be gone through twice; without, methods
    other than MinMax copy it before the first sample.

        >>> class Reader(CalibrationDataReader):
        ...     def __init__(self, samples): self.samples, self.at = samples, -1
        ...     def rewind(self): self.at = -1
        ...     def get_next(self):
        ...         self.at += 1
        ...         return self.samples[self.at] if self.at < len(self.samples) else None
    """

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return callable(getattr(subclass, "get_next", None)) or NotImplemented

    @abc.abstractmethod
    def get_next(self) -> Optional[Mapping[str, Any]]:
        """The inputs by name, or None after the last sample."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return self

    def __next__(self) -> Mapping[str, Any]:
        result = self.get_next()
        if result is None:
            raise StopIteration
        return result


class TensorData:
    """What calibration found of one value."""

    def __init__(self, lowest: Any, highest: Any) -> None:
        self.lowest, self.highest = np.float32(lowest), np.float32(highest)

    @property
    def range_value(self) -> Tuple[Any, Any]:
        return self.lowest, self.highest

    def __repr__(self) -> str:
        return f"TensorData(lowest={self.lowest}, highest={self.highest})"


class TensorsData:
    """What calibration found, by the names of the values."""

    def __init__(self, calibration_method: CalibrationMethod, data: Mapping[str, TensorData]) -> None:
        self.calibration_method = calibration_method
        self.data: Dict[str, TensorData] = dict(data)

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def __getitem__(self, key: str) -> TensorData:
        return self.data[key]

    def __len__(self) -> int:
        return len(self.data)

    def keys(self) -> KeysView[str]:
        return self.data.keys()

    def values(self) -> ValuesView[TensorData]:
        return self.data.values()

    def items(self) -> ItemsView[str, TensorData]:
        return self.data.items()


class Calibrater:
    """What create_calibrator gives: collect_data, then compute_data."""

    def __init__(self, model: Union[str, "os.PathLike[str]"], options: Dict[str, Any], method: CalibrationMethod,
                 memory_limit: Union[None, int, str]) -> None:
        self._model, self._options, self._method, self._limit = model, options, method, memory_limit
        self._found: Dict[str, TensorData] = {}

    def collect_data(self, data_reader: CalibrationDataReader) -> None:
        """Goes through the samples. MinMax may be given more samples in another call."""
        if self._found and self._method is not CalibrationMethod.MinMax:
            raise ValueError(f"{self._method.name}: expected all samples in one call of collect_data, found a second one")
        report = work(self._model, None, self._options, data_reader, self._limit)
        for name, (low, high) in report["ranges"].items():
            old = self._found.get(name)
            self._found[name] = TensorData(low, high) if old is None else TensorData(min(low, old.lowest), max(high, old.highest))

    def compute_data(self) -> TensorsData:
        """The ranges of all values."""
        if not self._found:
            raise ValueError("expected collect_data before compute_data")
        return TensorsData(self._method, self._found)


_CALIBRATOR_OPTIONS = {"symmetric", "moving_average", "averaging_constant", "max_intermediate_outputs", "num_bins",
                       "num_quantized_bins", "percentile", "scenario"}


def create_calibrator(model: Union[str, "os.PathLike[str]"], op_types_to_calibrate: Optional[Sequence[str]] = None,
                      augmented_model_path: str = "augmented_model.onnx",
                      calibrate_method: CalibrationMethod = CalibrationMethod.MinMax, use_external_data_format: bool = False,
                      providers: Optional[Sequence[str]] = None, extra_options: Optional[Mapping[str, Any]] = None, *,
                      memory_limit: Union[None, int, str] = None) -> Calibrater:
    """Finds ranges without quantizing.

        >>> calibrator = create_calibrator("model.onnx", calibrate_method=CalibrationMethod.Entropy)
        >>> calibrator.collect_data(reader)
        >>> calibrator.compute_data()["x"].range_value

    No augmented model is written: its path is accepted and not used.
    """
    extra = dict(extra_options or {})
    unknown = sorted(set(extra) - _CALIBRATOR_OPTIONS)
    if unknown:
        raise ValueError(f"extra_options: nobody knows {', '.join(unknown)}")
    return Calibrater(model, calibration_options(calibrate_method, extra, op_types_to_calibrate), calibrate_method, memory_limit)


def calibration_options(method: CalibrationMethod, extra: Mapping[str, Any], op_types: Optional[Sequence[str]]) -> Dict[str, Any]:
    bins = {CalibrationMethod.Entropy: 128, CalibrationMethod.Percentile: 2048, CalibrationMethod.Distribution: 2048}
    average = extra.get("averaging_constant", 0.01) if extra.get("moving_average") else 0.0
    if not 0 <= average <= 1:
        raise ValueError(f"averaging_constant: expected 0 to 1, found {average}")
    return {"mode": 1, "method": method.value, "op_types": list(op_types or []), "moving_average": float(average),
            "histogram_bins": extra.get("num_bins", bins.get(method, 0)), "percentile": extra.get("percentile", 99.999),
            "symmetric_calibration": bool(extra.get("symmetric", method is CalibrationMethod.Percentile))}
