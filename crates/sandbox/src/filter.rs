//! The system calls that jailed programs may not make.
//!
//! Two filters stack. The zygote gets the long one before it starts, so that runs inherit it for
//! nothing; each run adds the short one, which takes away what the zygote itself still needs.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::Tier;

/// Compiled filters, to be installed in this order.
#[derive(Clone)]
pub(crate) struct Filters {
    /// For the zygote and all it becomes.
    pub(crate) zygote: Vec<BpfProgram>,
    /// For a run, in the kernel's layout of 8 bytes per instruction.
    pub(crate) run: Vec<u8>,
}

/// The filters of `tier`, where control groups count all memory or not.
pub(crate) fn filters(tier: Tier, memory_counted: bool) -> Result<Filters, String> {
    let text = |error: &dyn std::fmt::Display| format!("seccomp filter: {error}");
    let architecture =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|error| text(&error))?;
    let compile = |rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32| {
        let refuse = SeccompAction::Errno(errno as u32);
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)
            .and_then(BpfProgram::try_from)
            .map_err(|error| text(&error))
    };
    let forbidden = forbidden(tier, memory_counted).map_err(|error| text(&error))?;
    // `clone3` passes its flags in memory, where no filter sees them; libcs fall back to `clone`.
    let without_clone3 = BTreeMap::from([(libc::SYS_clone3, vec![])]);
    let run = [raw::load_number()]
        .into_iter()
        .chain(raw::refuse_other_abi())
        .chain(raw::refuse(libc::SYS_setns))
        .chain([raw::allow()]);
    Ok(Filters {
        zygote: vec![
            compile(forbidden, libc::EPERM)?,
            compile(without_clone3, libc::ENOSYS)?,
        ],
        run: run.flatten().collect(),
    })
}

fn forbidden(
    tier: Tier,
    memory_counted: bool,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        FORBIDDEN.iter().map(|call| (*call, vec![])).collect();
    #[cfg(target_arch = "x86_64")]
    rules.extend(FORBIDDEN_X86.iter().map(|call| (*call, vec![])));
    let new_namespaces = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let with_flag = |flag: i32| {
        let flag = flag as u64;
        let (width, masked) = (SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag));
        SeccompRule::new(vec![SeccompCondition::new(0, width, masked, flag)?])
    };
    let clone = new_namespaces
        .into_iter()
        .map(with_flag)
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_clone, clone);
    // Pushing input into a terminal that the host may still read from. Only the lower half counts.
    let push_input = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| {
        let (width, equal) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
        SeccompRule::new(vec![SeccompCondition::new(1, width, equal, request)?])
    });
    let push_input = push_input.into_iter().collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, push_input);
    // Devices; a FIFO is made by the same calls.
    for (call, mode) in MAKE_NODE {
        let device = |kind: u32| {
            let (kind, mask) = (u64::from(kind), u64::from(libc::S_IFMT));
            let (width, masked) = (SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask));
            SeccompRule::new(vec![SeccompCondition::new(*mode, width, masked, kind)?])
        };
        rules.insert(*call, vec![device(libc::S_IFBLK)?, device(libc::S_IFCHR)?]);
    }
    // A program that could send SIGKILL could make its own end look like a fault of the machine.
    for (call, signal) in SIGNAL_CALLS {
        let (width, equal) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
        let kill = SeccompCondition::new(*signal, width, equal, libc::SIGKILL as u64)?;
        rules.insert(*call, vec![SeccompRule::new(vec![kill])?]);
    }
    if tier != Tier::Namespaces {
        // No network namespace: no sockets. `socketpair` stays.
        rules.insert(libc::SYS_socket, vec![]);
        // No mount and pid namespaces: no joining of others, and no way out of the process group.
        rules.insert(libc::SYS_setns, vec![]);
        // The processes of the slot are the same user's. 0 is the caller itself.
        for (call, arguments) in ON_PROCESSES {
            let other = |argument: &u8| {
                let (width, not_equal) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Ne);
                SeccompRule::new(vec![SeccompCondition::new(*argument, width, not_equal, 0)?])
            };
            let others = arguments.iter().map(other).collect::<Result<_, _>>()?;
            rules.insert(*call, others);
        }
    }
    if tier != Tier::Namespaces || !memory_counted {
        // What is held by name or descriptor is in no process's memory, where the watchdog looks;
        // and without a namespace of its own, it would be there for the next run.
        rules.extend(NAMELESS_MEMORY.iter().map(|call| (*call, vec![])));
    }
    Ok(rules)
}

/// Calls that change how other processes run, and the arguments that must be 0 to mean the caller.
const ON_PROCESSES: &[(c_long, &[u8])] = &[
    (libc::SYS_prlimit64, &[0]),
    (libc::SYS_sched_setaffinity, &[0]),
    (libc::SYS_sched_setattr, &[0]),
    (libc::SYS_sched_setparam, &[0]),
    (libc::SYS_sched_setscheduler, &[0]),
    (libc::SYS_setpriority, &[0, 1]),
];

/// Calls that make a file of any kind, and which argument says the kind.
const MAKE_NODE: &[(c_long, u8)] = &[
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Memory that is not in the address space of a process, or outlives it.
const NAMELESS_MEMORY: &[c_long] = &[
    libc::SYS_memfd_create,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
];

/// Calls that send a signal, and which argument names it.
const SIGNAL_CALLS: &[(c_long, u8)] = &[
    (libc::SYS_kill, 1),
    (libc::SYS_tkill, 1),
    (libc::SYS_tgkill, 2),
    (libc::SYS_pidfd_send_signal, 1),
    (libc::SYS_rt_sigqueueinfo, 1),
    (libc::SYS_rt_tgsigqueueinfo, 2),
];

/// Everything that changes the machine, reaches into other processes, or is a large and rarely
/// needed part of the kernel.
const FORBIDDEN: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_memfd_secret,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const FORBIDDEN_X86: &[c_long] = &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt];

/// Single instructions of the kernel's filter language, for what the library cannot express.
mod raw {
    use libc::c_long;

    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_NOT_BELOW: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;

    pub(super) fn load_number() -> Vec<u8> {
        instruction(LOAD, 0, 0, 0)
    }

    pub(super) fn refuse(call: c_long) -> [Vec<u8>; 2] {
        [
            instruction(JUMP_IF_EQUAL, 0, 1, call as u32),
            instruction(RETURN, 0, 0, ERRNO | libc::EPERM as u32),
        ]
    }

    /// The x32 numbers of x86-64 name the same calls once more.
    pub(super) fn refuse_other_abi() -> [Vec<u8>; 2] {
        const X32_BIT: u32 = 0x4000_0000;
        [
            instruction(JUMP_IF_NOT_BELOW, 0, 1, X32_BIT),
            instruction(RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
        ]
    }

    pub(super) fn allow() -> Vec<u8> {
        instruction(RETURN, 0, 0, ALLOW)
    }

    fn instruction(code: u16, if_true: u8, if_false: u8, operand: u32) -> Vec<u8> {
        let mut bytes = code.to_ne_bytes().to_vec();
        bytes.extend([if_true, if_false]);
        bytes.extend(operand.to_ne_bytes());
        bytes
    }
}
