use std::future::pending;

use super::*;

fn text(bytes: usize) -> Vec<u8> {
    vec![b'x'; bytes]
}

#[test]
fn what_waits_is_bounded_in_bytes() {
    let (inbox, mut outbox) = channel(1000);
    assert!(inbox.place(600).unwrap().put(PolicyId(1), 1, text(500)));
    assert_eq!(inbox.room.available_permits(), 500, "what it turned out to be");
    // Nobody makes lines for which there is no room.
    assert!(inbox.place(501).is_none());
    assert!(!inbox.place(100).unwrap().put(PolicyId(1), 1, text(501)));
    assert_eq!(inbox.room.available_permits(), 500);
    let copy = outbox.receiver.try_recv().unwrap();
    assert!(outbox.receiver.try_recv().is_err());
    drop(copy);
    // More than there is: alone.
    assert!(inbox.place(10).unwrap().put(PolicyId(1), 1, text(5000)));
    assert!(inbox.place(1).is_none());
    drop(outbox.receiver.try_recv());
    assert_eq!(inbox.room.available_permits(), 1000);
}

#[test]
fn a_queue_holds_its_share() {
    let (inbox, mut outbox) = channel(1000);
    let mut copy = |bytes| {
        assert!(inbox.place(bytes).unwrap().put(PolicyId(1), 1, text(bytes)));
        outbox.receiver.try_recv().unwrap()
    };
    let (queue, mut receiver) = Queue::new(3);
    assert!(queue.put(&copy(200), 300));
    assert!(!queue.put(&copy(101), 300));
    assert!(queue.put(&copy(100), 300));
    let sending = receiver.try_recv().unwrap();
    assert!(!queue.put(&copy(1), 300), "what is being sent counts");
    drop(sending);
    assert!(queue.put(&copy(200), 300));
    assert_eq!(inbox.room.available_permits(), 700);
    for _ in 0..2 {
        receiver.try_recv().unwrap();
    }
    assert!(queue.put(&copy(900), 300), "a large one alone");
    assert!(!queue.put(&copy(1), 300));
    // So many copies, however short; those that find no place leave nothing behind.
    receiver.try_recv().unwrap();
    let put: Vec<bool> = (0..4).map(|_| queue.put(&copy(1), 300)).collect();
    assert_eq!(put, [true, true, true, false]);
    drop(receiver);
    assert_eq!(inbox.room.available_permits(), 1000);
}

#[test]
fn what_waits_ends_with_the_subscription() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (inbox, mut outbox) = channel(1000);
        let (queue, mut receiver) = Queue::new(3);
        assert!(inbox.place(9).unwrap().put(PolicyId(1), 1, text(9)));
        assert!(queue.put(&outbox.receiver.try_recv().unwrap(), 300));
        let mut workers = JoinSet::new();
        let hung = async move {
            let _sending = receiver.recv().await;
            pending::<()>().await;
        };
        let route = Route {
            subscription: Subscription {
                name: "s".into(),
                mode: SubscriptionMode::Any,
                destinations: vec!["udp://127.0.0.1:1".into()],
            },
            queues: vec![queue],
            workers: vec![workers.spawn(hung)],
        };
        tokio::task::yield_now().await;
        drop(route);
        assert!(workers.join_next().await.unwrap().unwrap_err().is_cancelled());
        assert_eq!(inbox.room.available_permits(), 1000);
    });
}
