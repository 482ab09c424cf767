#![allow(missing_docs)]
#[allow(unused_imports)]
use sim::{Fault::*, Kind, Operation::*, Row, Trouble::*, run};
#[test]
fn tmp() {
    let operations = [
        Write { policy: 0, rows: vec![Row { series: 11, time: 473, fields: 29, value: 66981 }, Row { series: 9, time: 295, fields: 16, value: 61016 }] },
        Begin(Fail(Kind::Write, Nth(16))),
        Write { policy: 0, rows: vec![Row { series: 5, time: 90, fields: 27, value: 96540 }, Row { series: 9, time: 335, fields: 5, value: 5608 }] },
        Flush,
        DeleteDatabase { database: 0 },
        DeleteMeasurement { database: 0, measurement: 0 },
    ];
    run(10134, &operations).unwrap();
}
