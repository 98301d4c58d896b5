//! The place of threads that work ahead: behind those that use what they make.

#[cfg(target_os = "linux")]
use rustix::process::{getpid, getpriority_process, setpriority_process};

/// By how much: where both want the same processor, such a thread has about a tenth of it (nice value, sched(7)).
#[cfg(target_os = "linux")]
const BEHIND: i32 = 10;

/// Lowers the priority of the present thread below that of the program's first one, so that making steps ahead takes no processor from what
/// uses them; while that waits for a step, the thread has its processor. On Linux alone, where each thread has a priority of its own. A system that
/// refuses leaves it as it is: only speed depends on it.
pub(super) fn stand_behind() {
    #[cfg(target_os = "linux")]
    if let (Ok(first), Ok(own)) = (getpriority_process(Some(getpid())), getpriority_process(None)) {
        // Not from its own place: a thread inherits that of the one that starts it, which may stand behind already.
        let behind = first + BEHIND;
        if own < behind {
            let _refused = setpriority_process(None, behind);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn threads_stand_behind_once_and_leave_the_others_where_they_are() {
        let place = || {
            stand_behind();
            getpriority_process(None)
        };
        let both = move || (place(), std::thread::spawn(place).join());
        let before = getpriority_process(None).unwrap();
        // 19 is the last place there is.
        let behind = (getpriority_process(Some(getpid())).unwrap() + BEHIND).min(19);
        let (own, of_its_own) = std::thread::spawn(both).join().unwrap();
        assert_eq!([own.unwrap(), of_its_own.unwrap().unwrap()], [behind; 2]);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
