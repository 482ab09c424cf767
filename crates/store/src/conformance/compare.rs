//! Compares scans of a store with scans of the model.

mod cursor;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    BytesRegex, CompareOp, DatabaseId, FieldFilter, FieldType, Interrupt, MeasurementSchema, Name,
    Operand, Scalar, SeriesKey, TagExpr, TextPattern, TextPieces, TextTest, TimeRange,
};

use self::cursor::read_cursor;
use self::windows::check_windows;
use super::apply::{failed, same};
use super::operation::{Probe, ProbeFilter};
use crate::reference::ReferenceStore;
use crate::testing::{self, Row};
use crate::{
    MetadataKind, MetadataRequest, NameFilter, Scan, ScanRequest, ScanSlice, Store, TimeOrder,
};

/// Rows by canonical series key, in the order they were handed out.
type RowsByKey = BTreeMap<String, Vec<Row>>;

pub(super) fn names_request(
    database: DatabaseId,
    kind: &MetadataKind,
    measurements: &NameFilter,
    series: &TagExpr,
) -> MetadataRequest {
    MetadataRequest {
        database,
        kind: kind.clone(),
        measurements: measurements.clone(),
        series: series.clone(),
        facts_max: None,
        context: testing::unlimited(),
    }
}

pub(super) fn check_probe(
    store: &dyn Store,
    model: &ReferenceStore,
    probe: &Probe,
) -> Result<(), String> {
    let schema = model.schema(probe.policy.database, &probe.measurement, &Interrupt::new());
    let schema = schema.map_err(failed("model"))?.unwrap_or_default();
    let request = request_of(probe, &schema);
    let scan = store.scan(&request).map_err(failed("scan"))?;
    let pinned = model.scan(&request).map_err(failed("model"))?;
    check_series_table(&*scan, &request)?;
    check_extent(&*scan, &*pinned, &request)?;
    check_matching(&*scan, &*pinned, &request)?;
    let place = |at: &usize| at % request.fields.len().max(1);
    let with_any = probe.with_any.as_ref().filter(|_| !request.fields.is_empty());
    let with_any: Option<Arc<[usize]>> = with_any.map(|any| any.iter().map(place).collect());
    check_cuts(&*scan, probe.series_parts as usize)?;
    if request.windows.is_none() {
        check_ends(&*scan, &request)?;
        check_series_with_rows(&*scan, &request)?;
        for time in probe.time_slices() {
            check_has_rows(&*scan, &request, time)?;
        }
        for time in probe.time_slices().into_iter().filter(|_| !request.joins_series) {
            check_field_ends(&*scan, &request, time)?;
        }
    }
    let mut ordinals: Vec<u32> = (0..scan.series().len).collect();
    // Disjoint series in the store's own order, whatever it is.
    let parts = probe.series_parts.max(1);
    for part in 0..parts {
        let of_part: Vec<u32> = ordinals.extract_if(.., |o| *o % parts == part).collect();
        for time in probe.time_slices() {
            let series = (parts > 1).then(|| of_part.clone().into());
            let (with_any, rows_per_series) = (with_any.clone(), probe.rows_per_series);
            let slice = ScanSlice { series, time, with_any, rows_per_series };
            if request.windows.is_some() {
                check_windows(&*scan, &*pinned, &request, &slice)?;
            } else {
                check_rows(&*scan, model, &request, &slice, &of_part)?;
            }
        }
    }
    Ok(())
}

/// Cuts ascend, and leave no part without series.
fn check_cuts(scan: &dyn Scan, parts: usize) -> Result<(), String> {
    let len = scan.series().len as usize;
    let every_third: Vec<u32> = (0..scan.series().len).step_by(3).collect();
    for (series, len) in [(None, len), (Some(&*every_third), every_third.len())] {
        let cuts = scan.cuts(series, parts).map_err(failed("cuts"))?;
        let ascend = cuts.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascend || cuts.len() >= parts.max(1) || cuts.iter().any(|cut| *cut == 0 || *cut >= len)
        {
            return Err(format!("cuts of {len} series into {parts} parts: {cuts:?}"));
        }
    }
    Ok(())
}

/// No row of a series comes before where it is said to begin.
fn check_ends(scan: &dyn Scan, request: &ScanRequest) -> Result<(), String> {
    let len = scan.series().len;
    for series in [None, Some((0..len).step_by(2).collect::<Vec<u32>>())] {
        let ends = scan.ends(series.as_deref()).map_err(failed("ends"))?;
        let Some(ends) = ends else { continue };
        let series = series.unwrap_or_else(|| (0..len).collect());
        if ends.len() != series.len() {
            return Err(format!("{} ends of {} series", ends.len(), series.len()));
        }
        for (ordinal, end) in series.into_iter().zip(ends) {
            let slice = ScanSlice::series_range(ordinal..ordinal + 1);
            let rows = testing::read_slice(scan, request, &slice).map_err(failed("read"))?;
            let comes_before = |time: i64| match request.order {
                TimeOrder::Ascending => time < end,
                TimeOrder::Descending => time > end,
            };
            if let Some(row) = rows.iter().find(|row| comes_before(row.time_ns)) {
                return Err(format!("{ordinal} is said to begin at {end}, but has {row:?}"));
            }
        }
    }
    Ok(())
}

/// A time is said to have rows if it has some.
fn check_has_rows(scan: &dyn Scan, request: &ScanRequest, time: TimeRange) -> Result<(), String> {
    let said = scan.has_rows(time).map_err(failed("has_rows"))?;
    let slice = ScanSlice { time, ..ScanSlice::all() };
    let rows = testing::read_slice(scan, request, &slice).map_err(failed("read"))?;
    let is_unclear = said && !request.filters.is_empty();
    if is_unclear { Ok(()) } else { same("has rows", &said, &!rows.is_empty()) }
}

/// Those series are said to have rows that have some.
fn check_series_with_rows(scan: &dyn Scan, request: &ScanRequest) -> Result<(), String> {
    if !request.filters.is_empty() || request.joins_series {
        return Ok(());
    }
    let said = scan.series_with_rows().map_err(failed("series_with_rows"))?;
    let mut have = Vec::new();
    for ordinal in 0..scan.series().len {
        let slice = ScanSlice::series_range(ordinal..ordinal + 1);
        let rows = testing::read_slice(scan, request, &slice).map_err(failed("read"))?;
        have.extend((!rows.is_empty()).then_some(ordinal));
    }
    same("series with rows", &said, &have)
}

/// What is said to be the first value of each field is.
fn check_field_ends(scan: &dyn Scan, request: &ScanRequest, time: TimeRange) -> Result<(), String> {
    let all: Vec<u32> = (0..scan.series().len).collect();
    let every_third: Vec<u32> = all.iter().copied().step_by(3).collect();
    for series in [all, every_third] {
        let ends = scan.field_ends(&series, time).map_err(failed("field_ends"))?;
        let Some(ends) = ends else { continue };
        let mut got = BTreeMap::new();
        for (at, span) in ends.spans.iter().enumerate() {
            for ((name, _), field) in request.fields.iter().zip(&ends.fields) {
                let first = match request.order {
                    TimeOrder::Ascending => &field.firsts,
                    TimeOrder::Descending => &field.lasts,
                };
                if field.counts[at] > 0 {
                    let end = (first.times[at], first.values.get(at));
                    got.insert((span.series, name.clone()), end);
                }
            }
        }
        let mut want = BTreeMap::new();
        for ordinal in series {
            let slice = ScanSlice { time, ..ScanSlice::series_range(ordinal..ordinal + 1) };
            for row in testing::read_slice(scan, request, &slice).map_err(failed("read"))? {
                for (name, value) in row.fields {
                    want.entry((ordinal, name)).or_insert((row.time_ns, value));
                }
            }
        }
        let agree = |((a, got), (b, want)): ((&_, &(i64, Scalar)), (&_, &(i64, Scalar)))| {
            a == b && got.0 == want.0 && testing::same(&got.1, &want.1)
        };
        if got.len() != want.len() || !got.iter().zip(&want).all(agree) {
            return Err(format!(
                "first values of fields in {time:?}\n  are {got:?}\n  not {want:?}"
            ));
        }
    }
    Ok(())
}

/// The request of a probe; all tags are asked for, so that a series can be recognised.
fn request_of(probe: &Probe, schema: &MeasurementSchema) -> ScanRequest {
    let have = &schema.fields;
    let mut fields: Vec<(Name, FieldType)> = Vec::new();
    for at in probe.fields.iter().filter(|_| !have.is_empty()) {
        let field = &have[at % have.len()];
        if !fields.contains(field) {
            fields.push(field.clone());
        }
    }
    if fields.is_empty() {
        fields.clone_from(have);
    }
    let filter = probe.filter.as_ref().and_then(|filter| filter_of(filter, have));
    // Whoever filters by a field asks for it.
    let of_filter = filter.iter().flat_map(FieldFilter::fields);
    let of_filter = of_filter.filter_map(|name| have.iter().find(|field| field.0 == *name));
    for field in of_filter {
        if !fields.contains(field) {
            fields.push(field.clone());
        }
    }
    let mut tags = schema.tag_keys.clone();
    tags.reverse();
    tags.push("no such tag".into());
    ScanRequest {
        policy: probe.policy,
        measurement: probe.measurement.clone(),
        fields,
        tags,
        series: probe.series.clone(),
        time: probe.time,
        filters: filter.into_iter().collect(),
        order: probe.order,
        windows: probe.windows,
        joins_series: probe.joins_series,
        context: testing::unlimited(),
    }
}

fn filter_of(filter: &ProbeFilter, have: &[(Name, FieldType)]) -> Option<FieldFilter> {
    let field_type = filter.constant.field_type();
    let of_type: Vec<_> = have.iter().filter(|field| field.1 == field_type).collect();
    let name = |at: usize| Some(of_type.get(at % of_type.len().max(1))?.0.clone());
    let operand = match (filter.other, &filter.constant, filter.op) {
        (Some(other), ..) if field_type.is_numeric() => Operand::Field(name(other)?),
        (Some(other), Scalar::String(text), CompareOp::Equal | CompareOp::NotEqual) => {
            // Most texts differ in the end.
            let piece = TextPieces::one(&text.as_bytes()[text.len().saturating_sub(2)..]);
            let regex = BytesRegex::new("[0-4]").expect("BUG: no expression");
            let tests = [
                TextTest::Having,
                TextTest::Starting,
                TextTest::Ending,
                TextTest::Being,
                TextTest::Matching(regex),
            ];
            Operand::Text(TextPattern::new(piece, tests[other % tests.len()].clone()))
        }
        _ => Operand::Constant(filter.constant.clone()),
    };
    Some(FieldFilter { field: name(filter.field)?, op: filter.op, operand })
}

fn check_series_table(scan: &dyn Scan, request: &ScanRequest) -> Result<(), String> {
    let table = scan.series();
    let keys: Vec<&Name> = table.tags.iter().map(|column| &column.key).collect();
    same("columns of the series table", &keys, &request.tags.iter().collect())?;
    for column in &table.tags {
        let values: Vec<&str> = column.values.iter().collect();
        if !values.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(format!("values of tag {} are not sorted: {values:?}", column.key));
        }
        same("codes of a tag column", &column.codes.len(), &(table.len as usize))?;
        if column.codes.iter().any(|code| *code as usize >= values.len()) {
            return Err(format!("codes of tag {} are out of range", column.key));
        }
    }
    let tags: Vec<String> =
        (0..table.len).map(|series| testing::series_key(scan, request, series)).collect();
    let distinct: BTreeSet<&String> = tags.iter().collect();
    same("distinct series of a scan", &distinct.len(), &tags.len())
}

/// Every row must lie in one of the parts.
fn check_extent(scan: &dyn Scan, pinned: &dyn Scan, request: &ScanRequest) -> Result<(), String> {
    let parts = scan.extent();
    let ascending = parts.windows(2).all(|pair| pair[0].time.max < pair[1].time.min);
    if !ascending || parts.iter().any(|part| part.time.is_empty()) {
        return Err(format!("extent is not ascending and disjoint: {parts:?}"));
    }
    for row in testing::read_slice(pinned, &without_hints(request), &ScanSlice::all())
        .map_err(failed("model"))?
    {
        if !parts.iter().any(|part| part.time.contains(row.time_ns)) {
            return Err(format!(
                "no part of the extent {parts:?} holds the row at {}",
                row.time_ns
            ));
        }
    }
    Ok(())
}

/// Exactly the series that satisfy the condition are there, but some may have no rows.
fn check_matching(scan: &dyn Scan, pinned: &dyn Scan, request: &ScanRequest) -> Result<(), String> {
    let keys: BTreeSet<String> =
        (0..scan.series().len).map(|s| testing::series_key(scan, request, s)).collect();
    let rows = testing::read_slice(pinned, &without_hints(request), &ScanSlice::all());
    for row in rows.map_err(failed("model"))? {
        if !keys.contains(&row.key) {
            return Err(format!("the scan does not have the series {}", row.key));
        }
    }
    for key in keys {
        let parsed = SeriesKey::parse(key.as_bytes()).map_err(|e| format!("{key}: {e}"))?;
        if !request.series.evaluate(&|tag: &str| parsed.tag(tag)) {
            return Err(format!("the scan has the series {key} that was not asked for"));
        }
    }
    Ok(())
}

fn without_hints(request: &ScanRequest) -> ScanRequest {
    ScanRequest { filters: Vec::new(), windows: None, joins_series: false, ..request.clone() }
}

fn check_rows(
    scan: &dyn Scan,
    model: &ReferenceStore,
    request: &ScanRequest,
    slice: &ScanSlice,
    ordinals: &[u32],
) -> Result<(), String> {
    let mut got = by_key(read_cursor(scan, request, slice)?);
    let of_model = |request: ScanRequest| -> Result<RowsByKey, String> {
        let time = request.time.intersect(&slice.time);
        let rows = testing::read(model, &ScanRequest { time, ..request });
        Ok(by_key(rows.map_err(failed("model"))?))
    };
    let all = of_model(without_hints(request))?;
    let mut wanted = of_model(ScanRequest { windows: None, ..request.clone() })?;
    if let Some(any) = &slice.with_any {
        let names: Vec<&Name> = any.iter().map(|field| &request.fields[*field].0).collect();
        let matters = |row: &Row| row.fields.iter().any(|(name, _)| names.contains(&name));
        wanted.values_mut().for_each(|rows| rows.retain(matters));
    }
    let limit = slice.rows_per_series.map_or(usize::MAX, |n| n as usize);
    let has_hints = slice.rows_per_series.is_some() || slice.with_any.is_some();
    let exact = request.filters.is_empty() && !has_hints;
    let mut table: Vec<String> =
        ordinals.iter().map(|series| testing::series_key(scan, request, *series)).collect();
    let mut all = all;
    if request.joins_series {
        for rows in [&mut all, &mut wanted] {
            rows.retain(|key, _| table.contains(key));
        }
        [&mut got, &mut all, &mut wanted].into_iter().for_each(join);
        table = vec![String::new()];
    }
    for (key, rows) in &got {
        if !table.contains(key) {
            return Err(format!("series {key} is not in the slice"));
        }
        let all = all.get(key).map_or(&[][..], Vec::as_slice);
        if !is_subsequence(rows, all) {
            return Err(describe(key, slice.time, "has rows", rows, "which are not all of", all));
        }
    }
    for (key, rows) in &wanted {
        let handed_out = got.get(key).map_or(&[][..], Vec::as_slice);
        // A series of another part of this scan is compared with that part.
        let here = table.contains(key);
        let least = &rows[..rows.len().min(limit)];
        if here && !is_subsequence(least, handed_out) || here && exact && rows != handed_out {
            return Err(describe(key, slice.time, "has rows", handed_out, "wanted are", least));
        }
    }
    Ok(())
}

fn describe(
    key: &str,
    time: TimeRange,
    what: &str,
    rows: &[Row],
    relation: &str,
    others: &[Row],
) -> String {
    let list = |rows: &[Row]| -> String {
        rows.iter().map(|row| format!("\n    {}", testing::line_of(row))).collect()
    };
    format!("series {key} in {time:?} {what}{}\n  {relation}{}", list(rows), list(others))
}

fn is_subsequence(some: &[Row], all: &[Row]) -> bool {
    let mut all = all.iter();
    some.iter().all(|row| all.any(|other| other == row))
}

fn by_key(rows: Vec<Row>) -> RowsByKey {
    let mut map = RowsByKey::new();
    for row in rows {
        map.entry(row.key.clone()).or_default().push(row);
    }
    map
}

/// Forgets which series rows are of, and their order.
fn join(rows: &mut RowsByKey) {
    let mut all: Vec<Row> = std::mem::take(rows).into_values().flatten().collect();
    all.iter_mut().for_each(|row| row.key = String::new());
    all.sort_by_cached_key(testing::line_of);
    rows.insert(String::new(), all);
}

/// Whether times follow each other as the request says.
fn in_order(order: TimeOrder, earlier: i64, later: i64) -> bool {
    match order {
        TimeOrder::Ascending => earlier < later,
        TimeOrder::Descending => earlier > later,
    }
}

/// Whether a value is a number that arithmetic on it can be compared for.
fn is_plain(value: &Scalar) -> bool {
    match value {
        Scalar::Float(v) => v.is_finite() && v.abs() < 1e100,
        Scalar::Integer(_) | Scalar::Unsigned(_) => true,
        Scalar::String(_) | Scalar::Boolean(_) => false,
    }
}
