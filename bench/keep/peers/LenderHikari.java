/* LenderHikari.java - HikariCP's connection cycle, for bench/keep/lender.c.
 *
 *   java -cp JARS LenderHikari.java [--rounds N] [--ms N]
 *
 * prints a line `hikari WORK_ns VALUE` for each run. The works are those of
 * lender.c. As in the benchmark by which it measures itself, a connection does
 * nothing, and what is timed is getConnection() and close(): it is not used in
 * between. HikariCP notes times always, so it is the same for `timed` works.
 */
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.PrintWriter;
import java.sql.*;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executor;
import java.util.logging.Logger;
import javax.sql.DataSource;

public class LenderHikari {
    static final String[] NAMES = {"cycle-1of8", "cycle-2of8", "cycle-8of32",
        "cycle-8of2", "held-8of2", "timed-1of8", "timed-2of8"};
    static final int[] THREADS = {1, 2, 8, 8, 8, 1, 2};
    static final int[] SIZES = {8, 8, 32, 2, 2, 8, 8};
    static final int CHUNK = 256;

    static boolean held(int work) {
        return NAMES[work].startsWith("held");
    }

    /* Nanoseconds an operation: from the first start to the last end, divided
     * by the operations of all. */
    static double run(DataSource source, int threads, boolean held, long ms)
            throws Exception {
        long[] starts = new long[threads];
        long[] ends = new long[threads];
        long[] done = new long[threads];
        Throwable[] failed = new Throwable[1];
        CyclicBarrier together = new CyclicBarrier(threads);
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int index = t;
            all[t] = new Thread(() -> {
                try {
                    together.await();
                    starts[index] = System.nanoTime();
                    long end = starts[index] + ms * 1000000;
                    long count = 0;
                    do {
                        for (int i = 0; i < CHUNK; i++) {
                            Connection connection = source.getConnection();
                            if (held)
                                Thread.yield();
                            connection.close();
                        }
                        count += CHUNK;
                        ends[index] = System.nanoTime();
                    } while (ends[index] < end);
                    done[index] = count;
                } catch (Throwable e) {
                    failed[0] = e;
                }
            });
            all[t].start();
        }
        long first = Long.MAX_VALUE, last = Long.MIN_VALUE, total = 0;
        for (int t = 0; t < threads; t++) {
            all[t].join();
            first = Math.min(first, starts[t]);
            last = Math.max(last, ends[t]);
            total += done[t];
        }
        if (failed[0] != null)
            throw new Exception(failed[0]);
        return (double) (last - first) / total;
    }

    public static void main(String[] args) throws Exception {
        int rounds = 5;
        long ms = 150;
        for (int i = 0; i + 1 < args.length; i += 2) {
            if (args[i].equals("--rounds"))
                rounds = Integer.parseInt(args[i + 1]);
            if (args[i].equals("--ms"))
                ms = Long.parseLong(args[i + 1]);
        }
        HikariDataSource[] sources = new HikariDataSource[NAMES.length];
        for (int w = 0; w < NAMES.length; w++) {
            HikariConfig config = new HikariConfig();
            config.setDataSource(new StubSource());
            config.setMinimumIdle(SIZES[w]);
            config.setMaximumPoolSize(SIZES[w]);
            sources[w] = new HikariDataSource(config);
            /* until all are there, and what runs is compiled */
            while (sources[w].getHikariPoolMXBean().getTotalConnections()
                    < SIZES[w])
                Thread.onSpinWait();
            for (int i = 0; i < 4; i++)
                run(sources[w], THREADS[w], held(w), 250);
        }
        for (int w = 0; w < NAMES.length; w++)
            for (int i = 0; i < rounds; i++)
                System.out.printf("hikari %s_ns %.2f%n", NAMES[w],
                    run(sources[w], THREADS[w], held(w), ms));
        for (HikariDataSource source : sources)
            source.close();
    }

    static class StubSource implements DataSource {
        public Connection getConnection() { return new Stub(); }
        public Connection getConnection(String u, String p) {
            return new Stub();
        }
        public PrintWriter getLogWriter() { return null; }
        public void setLogWriter(PrintWriter out) { }
        public void setLoginTimeout(int seconds) { }
        public int getLoginTimeout() { return 0; }
        public Logger getParentLogger() { return null; }
        public <T> T unwrap(Class<T> type) { return null; }
        public boolean isWrapperFor(Class<?> type) { return false; }
    }

    /* A connection that answers everything at once. */
    static class Stub implements Connection {
        private boolean auto = true;
        public Statement createStatement() { return null; }
        public PreparedStatement prepareStatement(String s) { return null; }
        public CallableStatement prepareCall(String s) { return null; }
        public String nativeSQL(String s) { return s; }
        public void setAutoCommit(boolean on) { auto = on; }
        public boolean getAutoCommit() { return auto; }
        public void commit() { }
        public void rollback() { }
        public void close() { }
        public boolean isClosed() { return false; }
        public DatabaseMetaData getMetaData() { return null; }
        public void setReadOnly(boolean on) { }
        public boolean isReadOnly() { return false; }
        public void setCatalog(String c) { }
        public String getCatalog() { return null; }
        public void setTransactionIsolation(int level) { }
        public int getTransactionIsolation() { return 2; }
        public SQLWarning getWarnings() { return null; }
        public void clearWarnings() { }
        public Statement createStatement(int a, int b) { return null; }
        public PreparedStatement prepareStatement(String s, int a, int b) {
            return null;
        }
        public CallableStatement prepareCall(String s, int a, int b) {
            return null;
        }
        public Map<String, Class<?>> getTypeMap() { return null; }
        public void setTypeMap(Map<String, Class<?>> map) { }
        public void setHoldability(int h) { }
        public int getHoldability() { return 0; }
        public Savepoint setSavepoint() { return null; }
        public Savepoint setSavepoint(String name) { return null; }
        public void rollback(Savepoint s) { }
        public void releaseSavepoint(Savepoint s) { }
        public Statement createStatement(int a, int b, int c) { return null; }
        public PreparedStatement prepareStatement(String s, int a, int b,
                int c) {
            return null;
        }
        public CallableStatement prepareCall(String s, int a, int b, int c) {
            return null;
        }
        public PreparedStatement prepareStatement(String s, int k) {
            return null;
        }
        public PreparedStatement prepareStatement(String s, int[] k) {
            return null;
        }
        public PreparedStatement prepareStatement(String s, String[] k) {
            return null;
        }
        public Clob createClob() { return null; }
        public Blob createBlob() { return null; }
        public NClob createNClob() { return null; }
        public SQLXML createSQLXML() { return null; }
        public boolean isValid(int seconds) { return true; }
        public void setClientInfo(String name, String value) { }
        public void setClientInfo(Properties p) { }
        public String getClientInfo(String name) { return null; }
        public Properties getClientInfo() { return null; }
        public Array createArrayOf(String type, Object[] e) { return null; }
        public Struct createStruct(String type, Object[] a) { return null; }
        public void setSchema(String s) { }
        public String getSchema() { return null; }
        public void abort(Executor e) { }
        public void setNetworkTimeout(Executor e, int ms) { }
        public int getNetworkTimeout() { return 0; }
        public <T> T unwrap(Class<T> type) { return null; }
        public boolean isWrapperFor(Class<?> type) { return false; }
    }
}
