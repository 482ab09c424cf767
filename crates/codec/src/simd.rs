//! Which instruction set to use, decided once at run time.
//!
//! `multiversion!` compiles one portable body several times, so that the compiler vectorises it
//! for each instruction set; the few loops that need intrinsics have their own `x86` modules and
//! are dispatched by hand. NEON belongs to the baseline of AArch64, so there the portable body is
//! already the NEON one.

/// An instruction set that kernels and decoders have been compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimdLevel {
    /// Whatever the target's baseline offers (SSE2 on x86-64, NEON on AArch64).
    Portable,
    /// AVX2 with BMI2 and POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with the byte permutations of VBMI (Ice Lake, Zen 4 and later).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl SimdLevel {
    /// The best level of this machine.
    #[inline]
    #[must_use]
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::sync::OnceLock;
            static LEVEL: OnceLock<SimdLevel> = OnceLock::new();
            *LEVEL.get_or_init(|| {
                *Self::available().last().expect("BUG: the portable level is always available")
            })
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            Self::Portable
        }
    }

    /// All levels this machine can run, the worst first.
    #[cfg(any(test, target_arch = "x86_64"))]
    #[must_use]
    pub(crate) fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut levels = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            levels.push(Self::Avx2);
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vbmi")
            {
                levels.push(Self::Avx512);
            }
        }
        levels
    }
}

/// The instruction set in use, for logs and inspection.
#[must_use]
pub fn simd_name() -> &'static str {
    match SimdLevel::detect() {
        SimdLevel::Portable => "portable",
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => "avx2",
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => "avx512",
    }
}

/// `fn name / at(..)` defines `name`, which runs on the best level, and `at`, which runs on a given
/// level; `fn / at(..)` defines the latter only.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident / $at:ident
     ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            $at($crate::simd::SimdLevel::detect(), $($arg),*)
        }

        $crate::simd::multiversion! { fn / $at($($arg: $ty),*) $(-> $ret)? $body }
    };

    (fn / $at:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        #[allow(unsafe_code, clippy::inline_always)]
        pub(super) fn $at(level: $crate::simd::SimdLevel, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn portable($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                portable($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(
                enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"
            )]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                portable($($arg),*)
            }

            match level {
                $crate::simd::SimdLevel::Portable => portable($($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: a level is only made after its features were detected.
                $crate::simd::SimdLevel::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::simd::SimdLevel::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
}
pub(crate) use multiversion;
