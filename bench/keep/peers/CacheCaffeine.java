// CacheCaffeine.java - Caffeine, in a process of its own.
//
//   java -cp caffeine.jar CacheCaffeine.java ROOM KEYS STREAM SHAPE < commands
//
// reads the order of keys from the file STREAM (32-bit numbers), warms up, says
// "ready", and for each line "THREADS OPERATIONS" does as many operations on as
// many threads and answers with the sum of the values. SHAPE is get, mixed or
// load, as in cache.h; "ratio" asks for all keys once and prints the hits.
import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

public class CacheCaffeine {
    static final int CHUNK = 256;
    static Cache<String, Long> cache;
    static String[] keys;
    static Long[] values;
    static int[] stream;
    static String shape;
    static final AtomicLong next = new AtomicLong();

    static Long ask(int number, long i) {
        String key = keys[number];
        if (shape.equals("load"))
            return cache.get(key, k -> values[number]);
        if (shape.equals("mixed") && i % 5 == 0) {
            cache.put(key, values[number]);
            return values[number];
        }
        Long value = cache.getIfPresent(key);
        if (value == null) {
            value = values[number];
            cache.put(key, value);
        }
        return value;
    }

    static long part(long total) {
        long sum = 0;
        for (;;) {
            long from = next.getAndAdd(CHUNK);
            if (from >= total)
                return sum;
            long to = Math.min(total, from + CHUNK);
            for (long i = from; i < to; i++)
                sum += ask(stream[(int) (i % stream.length)], i);
        }
    }

    static long run(int threads, long total) throws Exception {
        long[] sums = new long[threads];
        Thread[] others = new Thread[threads];
        next.set(0);
        for (int t = 1; t < threads; t++) {
            int at = t;
            others[t] = new Thread(() -> sums[at] = part(total));
            others[t].start();
        }
        sums[0] = part(total);
        long sum = sums[0];
        for (int t = 1; t < threads; t++) {
            others[t].join();
            sum += sums[t];
        }
        return sum;
    }

    static void ratio() {
        long hits = 0;
        for (int number : stream) {
            if (cache.getIfPresent(keys[number]) != null)
                hits++;
            else
                cache.put(keys[number], values[number]);
        }
        System.out.printf("%.2f%n", 100.0 * hits / stream.length);
    }

    public static void main(String[] args) throws Exception {
        int room = Integer.parseInt(args[0]);
        int count = Integer.parseInt(args[1]);
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[2])))
            .order(ByteOrder.nativeOrder());
        shape = args[3];
        stream = new int[bytes.remaining() / 4];
        bytes.asIntBuffer().get(stream);
        keys = new String[count];
        values = new Long[count];
        for (int i = 0; i < count; i++) {
            keys[i] = String.format("%016d", i);
            values[i] = i + 1L;
        }
        // In the ratio, the policy is told of each read before the next one.
        Caffeine<Object, Object> builder = Caffeine.newBuilder()
            .maximumSize(room);
        if (shape.equals("ratio"))
            builder.executor(Runnable::run);
        cache = builder.build();
        if (shape.equals("ratio")) {
            ratio();
            return;
        }
        long end = System.nanoTime() + 2_000_000_000L;
        while (System.nanoTime() < end)
            run(1, 200_000);
        System.out.println("ready");
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            System.out.println(
                run(Integer.parseInt(words[0]), Long.parseLong(words[1])));
        }
    }
}
