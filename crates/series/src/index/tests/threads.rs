//! Creating from many threads while flushes and merges go on.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{DatabaseId, SeriesId, SeriesKey, TagExpr};

use super::{open, options};

#[test]
fn a_key_gets_one_id_whoever_asks() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    assert!(options().memory_bytes < 1 << 20, "parts are sealed during the test");
    let db = DatabaseId(1);
    let key = |n: u32| SeriesKey::parse(format!("m,host=h{n},dc={}", n % 3).as_bytes()).unwrap();
    let ids: Mutex<HashMap<u32, SeriesId>> = Mutex::default();
    let (news, done) = (Mutex::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u32)
            .map(|thread| {
                let (index, ids, news) = (&index, &ids, &news);
                scope.spawn(move || {
                    for step in 0..300u32 {
                        let numbers: Vec<u32> =
                            (0..10).map(|n| (step * 10 + n * (thread + 1)) % 2_500).collect();
                        let keys: Vec<_> = numbers.iter().map(|n| key(*n)).collect();
                        let made: Vec<_> = if step % 2 == 0 {
                            index.create_batch(db, &keys).unwrap()
                        } else {
                            keys.iter().map(|key| index.create(db, key).unwrap()).collect()
                        };
                        for (n, (id, new)) in numbers.into_iter().zip(made) {
                            *news.lock().unwrap() += u32::from(new);
                            let known = *ids.lock().unwrap().entry(n).or_insert(id);
                            assert_eq!(known, id);
                        }
                    }
                })
            })
            .collect();
        let maintenance = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                index.flush().unwrap();
                index.merge_step().unwrap();
            }
        });
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let before = ids.lock().unwrap().len() as u64;
                let seen = index.select(db, "m", &TagExpr::True).unwrap().len();
                assert!(seen >= before, "created series are visible at once");
                let counted = index.cardinality(db, None).unwrap();
                assert!(counted >= seen && counted <= 2_500);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        maintenance.join().unwrap();
        reader.join().unwrap();
    });
    let ids = ids.into_inner().unwrap();
    assert_eq!(news.into_inner().unwrap() as usize, ids.len());
    for (n, id) in ids {
        assert_eq!(index.lookup(db, &key(n)).unwrap(), Some(id));
    }
}
