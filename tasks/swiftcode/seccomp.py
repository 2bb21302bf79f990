"""A seccomp filter for candidates, as the kernel's own bytecode: a last wall behind namespaces, users and cgroups.

System calls that only an attack needs end the program with SIGSYS, which is told as verdict ``security``; some that have a
fallback are answered with ENOSYS, so that runtimes use the fallback. Numbers: Linux, x86-64 and AArch64.
"""

import platform
import struct

LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
ENOSYS, EPERM = 38, 1
NUMBER, ARCHITECTURE, ARGUMENT_0 = 0, 4, 16  # offsets in struct seccomp_data
NEW_NAMESPACES = 0x7E020000  # CLONE_NEWUSER, PID, NET, IPC, UTS, CGROUP, NS
X32 = 0x40000000

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# name → numbers on x86-64 and AArch64
FATAL = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "bpf": (321, 280),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}
ABSENT = {
    "clone3": (435, 435),  # its flags lie in memory, where a filter cannot see them; libraries then use clone
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "mq_open": (240, 180),  # message queues would outlive the candidate unseen
}
CLONE = (56, 220)


def program(machine: str | None = None) -> bytes | None:
    """The filter as struct sock_filter (8 bytes an instruction); None for a machine whose numbers are not known here."""
    machine = machine or platform.machine()
    if machine not in MACHINES:
        return None
    column = list(MACHINES).index(machine)
    code = [(LOAD, 0, 0, ARCHITECTURE), (JUMP_EQUAL, 1, 0, MACHINES[machine]), (RETURN, 0, 0, KILL)]
    code += [(LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":  # the same calls under other numbers
        code += [(0x35, 0, 1, X32), (RETURN, 0, 0, KILL)]
    for numbers in FATAL.values():
        code += [(JUMP_EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, KILL)]
    for numbers in ABSENT.values():
        code += [(JUMP_EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, ERRNO | ENOSYS)]
    code += [(JUMP_EQUAL, 0, 3, CLONE[column]), (LOAD, 0, 0, ARGUMENT_0)]
    code += [(JUMP_SET, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, KILL), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
