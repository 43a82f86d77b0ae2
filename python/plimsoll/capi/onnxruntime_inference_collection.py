"""The names that programs import from `onnxruntime.capi.onnxruntime_inference_collection`."""
from ..binding import IOBinding
from ..inference import InferenceSession
from ..sparse import SparseTensor
from ..values import OrtDevice, OrtValue

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "SparseTensor"]
