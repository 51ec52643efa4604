// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.oracle;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;

/** Random numbers from a seed. Each operation of a history has its own generator, so an operation stays the same when others are
 * left out. */
final class Dice {
    private final Random random;

    Dice(long seed, long number) {
        long mixed = seed * 0x9E3779B97F4A7C15L + number * 0xD1B54A32D192ED03L;
        mixed = (mixed ^ mixed >>> 29) * 0xBF58476D1CE4E5B9L;
        random = new Random(mixed ^ mixed >>> 32);
    }

    int below(int bound) {
        return random.nextInt(bound);
    }

    boolean chance(int percent) {
        return random.nextInt(100) < percent;
    }

    /** A number from `least` to `most`, both included. */
    int between(int least, int most) {
        return least + random.nextInt(most - least + 1);
    }

    @SafeVarargs
    final <T> T of(T... values) {
        return values[random.nextInt(values.length)];
    }

    <T> T of(List<T> values) {
        return values.get(random.nextInt(values.size()));
    }

    byte[] letters(String alphabet, int least, int most) {
        byte[] bytes = alphabet.getBytes(StandardCharsets.ISO_8859_1);
        byte[] out = new byte[between(least, most)];
        for (int i = 0; i < out.length; i++) {
            out[i] = bytes[random.nextInt(bytes.length)];
        }
        return out;
    }

    Random random() {
        return random;
    }
}
