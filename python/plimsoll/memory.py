"""Where memory is and how arenas grow, in ONNX Runtime's words."""
from typing import Any, Dict, Optional, Union

from .enums import OrtAllocatorType, OrtDeviceMemoryType, OrtMemoryInfoDeviceType, OrtMemType
from .errors import InvalidArgument


class OrtMemoryInfo:
    """A place for memory.

        >>> plimsoll.OrtMemoryInfo("Cpu", plimsoll.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, plimsoll.OrtMemType.DEFAULT).name
        'Cpu'
    """

    __slots__ = ("name", "allocator_type", "device_id", "mem_type", "device_mem_type", "device_vendor_id")

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType) -> None:
        self.name = name
        self.allocator_type = OrtAllocatorType(allocator_type)
        self.device_id = device_id
        self.mem_type = OrtMemType(mem_type)
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0

    @staticmethod
    def create_v2(name: str, device_type: OrtMemoryInfoDeviceType, vendor_id: int, device_id: int,
                  device_mem_type: OrtDeviceMemoryType, alignment: int,
                  allocator_type: OrtAllocatorType) -> "OrtMemoryInfo":
        info = OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT)
        info.device_mem_type = OrtDeviceMemoryType(device_mem_type)
        info.device_vendor_id = vendor_id
        return info

    def __repr__(self) -> str:
        return f"OrtMemoryInfo({self.name!r}, {self.allocator_type.name}, {self.device_id}, {self.mem_type.name})"


class OrtArenaCfg:
    """How an arena grows: by its four oldest settings in order, or a dict of any. -1 is the default of each; a
    `max_mem` of 0 is no limit.

        >>> plimsoll.OrtArenaCfg({"max_mem": 1 << 30, "arena_extend_strategy": 1}).max_mem
        1073741824
    """

    __slots__ = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
                 "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")
    arena_extend_strategy: int
    initial_chunk_size_bytes: int
    max_dead_bytes_per_chunk: int
    initial_growth_chunk_size_bytes: int
    max_power_of_two_extend_bytes: int

    def __init__(self, max_mem: Union[int, Dict[str, Any]], arena_extend_strategy: int = -1,
                 initial_chunk_size_bytes: int = -1, max_dead_bytes_per_chunk: int = -1) -> None:
        given: Dict[str, Any] = {
            "max_mem": max_mem, "arena_extend_strategy": arena_extend_strategy,
            "initial_chunk_size_bytes": initial_chunk_size_bytes, "max_dead_bytes_per_chunk": max_dead_bytes_per_chunk}
        if isinstance(max_mem, dict):
            given = max_mem
        self.max_mem = 0
        for name in self.__slots__[1:]:
            setattr(self, name, -1)
        for name, value in given.items():
            if name not in self.__slots__:
                raise InvalidArgument(f"Invalid OrtArenaCfg option: {name}; known are {', '.join(self.__slots__)}")
            if isinstance(value, bool) or not isinstance(value, int) or value < -1:
                raise InvalidArgument(f"OrtArenaCfg option {name}: expected a number from -1 on, found {value!r}")
            setattr(self, name, value)
        if self.arena_extend_strategy not in (-1, 0, 1):
            raise InvalidArgument(f"arena_extend_strategy {self.arena_extend_strategy}: expected 0 (kNextPowerOfTwo), "
                                  "1 (kSameAsRequested) or -1 (the default)")

    def __repr__(self) -> str:
        return "OrtArenaCfg({" + ", ".join(f"{name!r}: {getattr(self, name)}" for name in self.__slots__) + "})"
