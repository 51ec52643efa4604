// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;

/**
 * A Rorqual server for tests: the binary on free ports and a temporary folder. The server ends with this JVM, however the JVM
 * ends.
 *
 * <p>The binary is named by the system property rorqual.binary or the environment variable RORQUAL; otherwise it is the one in
 * this jar, if any, or {@code rorqual} on the PATH.
 */
public final class RorqualServer implements AutoCloseable {
  /** The system property that names the binary. */
  public static final String BINARY = "rorqual.binary";

  private static final Pattern READY =
      Pattern.compile("rorqual ready: zookeeper (\\S+):(\\d+), master \\S+:(\\d+), regionserver \\S+:(\\d+),");

  // The server's standard input is this JVM's: when it closes, the shell stops the server.
  private static final String WATCH =
      "trap : TERM; \"$@\" </dev/null & server=$!; echo $server >\"$0\"; exec >&-; cat >/dev/null; kill $server 2>/dev/null; "
          + "wait $server";

  private static final long STOP_SECONDS = 60;

  private final Path folder;
  private final Map<String, String> settings = new LinkedHashMap<>();
  private Process process;
  private Thread hook;
  private String host;
  private int zooKeeperPort;
  private int masterPort;
  private int regionServerPort;

  private RorqualServer() throws IOException {
    folder = Files.createTempDirectory("rorqual-test-");
  }

  /** Starts a server and returns when it accepts requests. */
  public static RorqualServer start() throws IOException {
    return start(Collections.<String, String>emptyMap());
  }

  /** Starts a server with these settings, by HBase's names. */
  public static RorqualServer start(Map<String, String> settings) throws IOException {
    RorqualServer server = new RorqualServer();
    server.settings.putAll(settings);
    try {
      server.run();
    } catch (IOException failed) {
      deleteAll(server.folder);
      throw failed;
    }
    return server;
  }

  private void run() throws IOException {
    List<String> command = new ArrayList<>(Arrays.asList("/bin/sh", "-c", WATCH, folder.resolve("pid").toString(), binary(), "server", "--data",
        folder.resolve("data").toString(), "--zk-port", Integer.toString(zooKeeperPort), "--master-port",
        Integer.toString(masterPort), "--rs-port", Integer.toString(regionServerPort), "--http", "none"));
    for (Map.Entry<String, String> setting : settings.entrySet()) {
      command.add("-D");
      command.add(setting.getKey() + "=" + setting.getValue());
    }
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.appendTo(log().toFile())).start();
    hook = new Thread(this::kill, "rorqual-test-end");
    Runtime.getRuntime().addShutdownHook(hook);
    BufferedReader said = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    Matcher ready = null;
    for (String line = said.readLine(); line != null && ready == null; line = ready == null ? said.readLine() : line) {
      Matcher matcher = READY.matcher(line);
      ready = matcher.find() ? matcher : null;
    }
    if (ready == null) {
      String problem = tail();
      end();
      throw new IOException("the Rorqual server did not become ready: " + problem);
    }
    host = ready.group(1);
    zooKeeperPort = Integer.parseInt(ready.group(2));
    masterPort = Integer.parseInt(ready.group(3));
    regionServerPort = Integer.parseInt(ready.group(4));
    discard(said);
  }

  /** Discards later lines, so that the server never blocks on a full pipe. */
  private static void discard(BufferedReader said) {
    Thread reader = new Thread(() -> {
      try {
        while (said.readLine() != null) {
          continue;
        }
      } catch (IOException closed) {
        return;
      }
    }, "rorqual-test-output");
    reader.setDaemon(true);
    reader.start();
  }

  private static String binary() throws IOException {
    String given = System.getProperty(BINARY, System.getenv("RORQUAL"));
    if (given != null && !given.isEmpty()) {
      if (!new File(given).canExecute()) {
        throw new IOException("not a program: " + given + " (system property " + BINARY + " or environment variable RORQUAL)");
      }
      return given;
    }
    String bundled = bundled();
    if (bundled != null) {
      return bundled;
    }
    for (String place : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
      File program = new File(place, "rorqual");
      if (program.canExecute() && program.isFile()) {
        return program.getPath();
      }
    }
    throw new IOException("there is no server: set the system property " + BINARY + " or the environment variable RORQUAL to the"
        + " binary rorqual, or put it on the PATH");
  }

  /** The binary in this jar, unpacked once per version; null: the jar has none for this processor. */
  private static String bundled() throws IOException {
    try (InputStream packed = RorqualServer.class.getResourceAsStream("rorqual-linux-" + System.getProperty("os.arch"))) {
      if (packed == null || !System.getProperty("os.name").startsWith("Linux")) {
        return null;
      }
      Path place = Files.createTempDirectory("rorqual-binary-");
      Path program = place.resolve("rorqual");
      Files.copy(packed, program, StandardCopyOption.REPLACE_EXISTING);
      if (!program.toFile().setExecutable(true)) {
        throw new IOException("cannot make " + program + " executable");
      }
      Runtime.getRuntime().addShutdownHook(new Thread(() -> deleteAll(place), "rorqual-test-binary"));
      return program.toString();
    }
  }

  private Path log() {
    return folder.resolve("log");
  }

  private String tail() {
    try {
      List<String> lines = Files.readAllLines(log(), StandardCharsets.UTF_8);
      return "its log ends: " + lines.subList(Math.max(0, lines.size() - 5), lines.size()).stream().collect(Collectors.joining(" | "));
    } catch (IOException unreadable) {
      return unreadable.toString();
    }
  }

  /** A configuration for clients of this server. */
  public Configuration getConfiguration() {
    Configuration conf = HBaseConfiguration.create();
    configure(conf);
    return conf;
  }

  /** Sets in a configuration what clients need to find this server. */
  public void configure(Configuration conf) {
    conf.set("hbase.zookeeper.quorum", host);
    conf.setInt("hbase.zookeeper.property.clientPort", zooKeeperPort);
    conf.set("zookeeper.znode.parent", "/hbase");
    conf.set("hbase.masters", host + ":" + masterPort);
  }

  public String getHost() {
    return host;
  }

  public int getZooKeeperPort() {
    return zooKeeperPort;
  }

  public int getMasterPort() {
    return masterPort;
  }

  public int getRegionServerPort() {
    return regionServerPort;
  }

  /** Stops the server and starts it again on its data and its ports. */
  public void restart() throws IOException {
    stop();
    run();
  }

  /** Kills the server as kill -9 does and starts it again on its data and its ports. */
  public void crashAndRestart() throws IOException {
    String pid = new String(Files.readAllBytes(folder.resolve("pid")), StandardCharsets.US_ASCII).trim();
    try {
      new ProcessBuilder("kill", "-9", pid).start().waitFor();
      process.getOutputStream().close();
      process.waitFor();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while the server is killed", interrupted);
    } finally {
      end();
    }
    run();
  }

  private void stop() throws IOException {
    try {
      process.getOutputStream().close();
      if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
        throw new IOException("the Rorqual server did not stop within " + STOP_SECONDS + " s; " + tail());
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while the server stops", interrupted);
    } finally {
      end();
    }
    if (process.exitValue() != 0) {
      throw new IOException("the Rorqual server ended with " + process.exitValue() + "; " + tail());
    }
  }

  private void end() {
    kill();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException stopping) {
      return; // the shutdown hook is running
    }
  }

  private void kill() {
    if (process.isAlive()) {
      process.destroy();
    }
  }

  /** Stops the server cleanly and removes its data. */
  @Override
  public void close() throws IOException {
    if (process.isAlive()) {
      try {
        stop();
      } finally {
        deleteAll(folder);
      }
    }
  }

  static void deleteAll(Path place) {
    try (Stream<Path> all = Files.walk(place)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
        Files.deleteIfExists(path);
      }
    } catch (IOException left) {
      System.err.println("not removed: " + place + ": " + left);
    }
  }
}
