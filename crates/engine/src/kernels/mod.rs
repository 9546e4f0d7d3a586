//! One operation per file: forward, backward, test. No kernel knows a model or a thread.

pub(crate) mod adamw;
pub(crate) mod attention;
pub(crate) mod bf16;
pub(crate) mod dispatch;
pub(crate) mod gemm;
pub(crate) mod head;
pub(crate) mod linear;
pub(crate) mod math;
pub(crate) mod panels;
pub(crate) mod qk_norm;
pub(crate) mod rmsnorm;
pub(crate) mod rope;
pub(crate) mod swiglu;
