"""Puts machine code into a wheel: only `make wheel` generates it, every other wheel is pure Python."""

import os
import sys
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# the folder with the generated code
FOLDER = "MERCER_MACHINE_CODE_FOLDER"
# the C library that numba's own wheels need
LINUX = "manylinux_2_28"


class MachineCode(BuildHookInterface):
    def initialize(self, version, build_data):
        folder = os.environ.get(FOLDER)
        if not folder or version == "editable":
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        system = sysconfig.get_platform().replace("linux", LINUX).replace("-", "_").replace(".", "_")
        build_data["force_include"][folder] = "mercer/_machine_code"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}{getattr(sys, 'abiflags', '')}-{system}"
