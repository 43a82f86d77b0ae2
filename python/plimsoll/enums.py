"""The enumerations of ONNX Runtime's API, with its names and numbers."""
from enum import IntEnum


class GraphOptimizationLevel(IntEnum):
    """How much the graph is rewritten before it runs.

        >>> options = plimsoll.SessionOptions()
        >>> options.graph_optimization_level = plimsoll.GraphOptimizationLevel.ORT_ENABLE_BASIC
    """

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Nodes run one after the other; ORT_PARALLEL is accepted and runs them so too.

        >>> plimsoll.SessionOptions().execution_mode.name
        'ORT_SEQUENTIAL'
    """

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """The order of the nodes. Plimsoll always takes the one that needs the least memory of those it tries.

        >>> plimsoll.SessionOptions().execution_order.name
        'DEFAULT'
    """

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(IntEnum):
    """What kind of allocator an OrtMemoryInfo names.

        >>> plimsoll.OrtAllocatorType.ORT_ARENA_ALLOCATOR.value
        1
    """

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(IntEnum):
    """Where memory is, as ONNX Runtime says it; here it is always the CPU's.

        >>> plimsoll.OrtMemType.CPU == plimsoll.OrtMemType.CPU_OUTPUT
        True
    """

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtMemoryInfoDeviceType(IntEnum):
    """Kinds of devices.

        >>> plimsoll.OrtMemoryInfoDeviceType.CPU.value
        0
    """

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtDeviceMemoryType(IntEnum):
    """Kinds of a device's memory.

        >>> plimsoll.OrtDeviceMemoryType.HOST_ACCESSIBLE.value
        5
    """

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtSparseFormat(IntEnum):
    """How a sparse tensor names its elements.

        >>> plimsoll.OrtSparseFormat.ORT_SPARSE_COO.value
        1
    """

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtDeviceVendorId(IntEnum):
    """PCI numbers of makers of devices.

        >>> hex(plimsoll.OrtDeviceVendorId.NVIDIA)
        '0x10de'
    """

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086
