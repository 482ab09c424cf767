// Reads a measurement of Nyala straight from its Kudu tables, as docs/kudu.md describes them.
//
//   java -cp 'lib/*' ReadMeasurement.java master-1:7051,master-2:7051 nyala cpu
//
// lib has kudu-client and what it needs (docs/kudu.md says how to get it). Prints a line for each row:
// database, policy, series key (measurement and tags), time, fields; separated by tabs, sorted.

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kudu.ColumnSchema;
import org.apache.kudu.client.KuduClient;
import org.apache.kudu.client.KuduException;
import org.apache.kudu.client.KuduPredicate;
import org.apache.kudu.client.KuduPredicate.ComparisonOp;
import org.apache.kudu.client.KuduScanner;
import org.apache.kudu.client.KuduTable;
import org.apache.kudu.client.RowResult;

public class ReadMeasurement {
    private static final int MEASUREMENT = 4;
    private static final int FIELD = 5;
    private static final String[] TYPES = {"float", "integer", "unsigned", "string", "boolean"};

    /** A field as the registry has it. */
    private record Field(String name, String type) {}

    private final KuduClient client;
    private final String prefix;

    private ReadMeasurement(KuduClient client, String prefix) {
        this.client = client;
        this.prefix = prefix;
    }

    public static void main(String[] args) throws KuduException {
        if (args.length != 3) {
            System.err.println("usage: ReadMeasurement.java MASTERS PREFIX MEASUREMENT");
            System.exit(2);
        }
        try (KuduClient client = new KuduClient.KuduClientBuilder(args[0]).build()) {
            new ReadMeasurement(client, args[1]).print(args[2]);
        }
    }

    private interface Reader {
        void read(RowResult row);
    }

    /** Hands over the rows of a table in which these columns have these values. */
    private void scan(KuduTable table, Map<String, Long> equal, Reader reader) throws KuduException {
        KuduScanner.KuduScannerBuilder builder = client.newScannerBuilder(table);
        for (Map.Entry<String, Long> entry : equal.entrySet()) {
            ColumnSchema column = table.getSchema().getColumn(entry.getKey());
            builder.addPredicate(KuduPredicate.newComparisonPredicate(
                    column, ComparisonOp.EQUAL, entry.getValue()));
        }
        KuduScanner scanner = builder.build();
        while (scanner.hasMoreRows()) {
            for (RowResult row : scanner.nextRows()) {
                reader.read(row);
            }
        }
    }

    private void print(String measurement) throws KuduException {
        KuduTable registry = client.openTable(prefix + ".registry");
        // By database: owner is -1 - D. A measurement's number is never used again.
        Map<Long, Long> databases = new HashMap<>();
        scan(registry, Map.of("space", (long) MEASUREMENT), row -> {
            if (measurement.equals(row.getString("text"))) {
                databases.put(row.getLong("number"), -1 - row.getLong("owner"));
            }
        });
        Pattern name = Pattern.compile(Pattern.quote(prefix) + "\\.db(\\d+)\\.rp(\\d+)\\.(?:[mn](\\d+)\\..*|shared)");
        TreeSet<String> lines = new TreeSet<>();
        for (Map.Entry<Long, Long> entry : databases.entrySet()) {
            long id = entry.getKey();
            Map<Long, String> keys = seriesKeys(id);
            Map<String, Field> columns = new HashMap<>();
            Map<Integer, Field> narrow = new HashMap<>();
            fields(registry, id, columns, narrow);
            // A policy's rows may be in two tables: one with a column a field, and a narrow one.
            Map<String, List<String>> tablesOf = new TreeMap<>();
            for (String table : client.getTablesList(prefix + ".db").getTablesList()) {
                Matcher found = name.matcher(table);
                if (!found.matches() || Long.parseLong(found.group(1)) != entry.getValue()) {
                    continue;
                }
                // Measurements from 2^40 on share a table.
                String owner = found.group(3);
                if (owner == null ? id >= 1L << 40 : Long.parseLong(owner) == id) {
                    tablesOf.computeIfAbsent(found.group(2), p -> new ArrayList<>()).add(table);
                }
            }
            for (Map.Entry<String, List<String>> policy : tablesOf.entrySet()) {
                Map<List<Long>, TreeMap<String, String>> rows = new HashMap<>();
                for (String table : policy.getValue()) {
                    read(client.openTable(table), id, columns, narrow, rows);
                }
                rows.forEach((key, values) -> {
                    // A series whose key is not there yet has no acknowledged rows.
                    if (keys.containsKey(key.get(0)) && !values.isEmpty()) {
                        List<String> shown = new ArrayList<>();
                        values.forEach((field, value) -> shown.add(field + "=" + value));
                        lines.add(entry.getValue() + "\t" + policy.getKey() + "\t"
                                + keys.get(key.get(0)) + "\t" + key.get(1) + "\t"
                                + String.join(",", shown));
                    }
                });
            }
        }
        lines.forEach(System.out::println);
    }

    /** Keys of a measurement's series by their ids, in line protocol's notation: name,tag=value. */
    private Map<Long, String> seriesKeys(long measurement) throws KuduException {
        Map<Long, String> keys = new HashMap<>();
        scan(client.openTable(prefix + ".series"), Map.of("measurement_id", measurement),
                row -> keys.put(row.getLong("series_id"), row.getString("key")));
        return keys;
    }

    private void fields(
            KuduTable registry, long measurement, Map<String, Field> columns,
            Map<Integer, Field> narrow) throws KuduException {
        scan(registry, Map.of("owner", measurement, "space", (long) FIELD), row -> {
            Field field = new Field(row.getString("text"), TYPES[(int) row.getLong("number")]);
            if (!row.isNull("data")) {
                narrow.put(row.getBinary("data").getInt(), field);
                return;
            }
            columns.put(field.name(), field);
            StringBuilder hashed = new StringBuilder("field:");
            ByteBuffer hash = row.getBinary("key");
            while (hash.hasRemaining()) {
                hashed.append(String.format("%02x", hash.get()));
            }
            columns.put(hashed.toString(), field);
        });
    }

    private void read(
            KuduTable table, long measurement, Map<String, Field> columns,
            Map<Integer, Field> narrow, Map<List<Long>, TreeMap<String, String>> rows)
            throws KuduException {
        boolean isNarrow = table.getSchema().getPrimaryKeyColumnCount() == 4;
        int key = table.getSchema().getPrimaryKeyColumnCount();
        Map<String, Long> own = isNarrow ? Map.of("measurement_id", measurement) : Map.of();
        scan(table, own, row -> {
            List<Long> where = List.of(row.getLong("series_id"), row.getLong("time"));
            TreeMap<String, String> values = rows.computeIfAbsent(where, w -> new TreeMap<>());
            for (int i = key; i < table.getSchema().getColumnCount(); i++) {
                String column = table.getSchema().getColumnByIndex(i).getName();
                Field field = isNarrow ? narrow.get(row.getInt("field_id")) : columns.get(column);
                if (field != null && !row.isNull(i)) {
                    values.put(field.name(), text(row, i, field.type()));
                }
            }
        });
    }

    private static String text(RowResult row, int column, String type) {
        switch (type) {
            case "float": return Double.toString(row.getDouble(column));
            case "integer": return Long.toString(row.getLong(column));
            case "unsigned": return Long.toUnsignedString(row.getLong(column));
            case "boolean": return Boolean.toString(row.getBoolean(column));
            default: return row.getString(column);
        }
    }
}
