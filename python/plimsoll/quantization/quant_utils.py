"""The types and formats of quantized models, as ONNX Runtime names them."""
import enum


class QuantType(enum.Enum):
    """What numbers become.

        >>> QuantType.from_string("QInt8") is QuantType.QInt8
        True
    """

    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def from_string(t: str) -> "QuantType":
        if t not in QuantType.__members__:
            raise ValueError(f"expected one of {', '.join(QuantType.__members__)}, found {t!r}")
        return QuantType[t]

    @property
    def tensor_type(self) -> int:
        """The number of ONNX's TensorProto.DataType."""
        return {"QInt8": 3, "QUInt8": 2, "QFLOAT8E4M3FN": 17, "QInt16": 5, "QUInt16": 4, "QInt4": 22, "QUInt4": 21}[self.name]


class QuantFormat(enum.Enum):
    """QOperator: operators on integers. QDQ: QuantizeLinear and DequantizeLinear around the operators."""

    QOperator = 0
    QDQ = 1

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def from_string(format: str) -> "QuantFormat":
        if format not in QuantFormat.__members__:
            raise ValueError(f"expected one of {', '.join(QuantFormat.__members__)}, found {format!r}")
        return QuantFormat[format]
