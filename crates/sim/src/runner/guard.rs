//! Panics become messages: one in the store is a finding like any other.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// What the last panic of this thread said and where, while one is awaited.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `work`; a panic becomes its message and place.
///
/// # Errors
/// The message of `work` or of its panic.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let awaited = LAST.with_borrow_mut(|last| {
                last.as_mut().map(|text| *text = info.to_string()).is_some()
            });
            if !awaited {
                before(info);
            }
        }));
    });
    let outside = LAST.replace(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(work));
    let message = LAST.replace(outside).unwrap_or_default();
    result.unwrap_or_else(|_| Err(format!("panic: {message}")))
}
