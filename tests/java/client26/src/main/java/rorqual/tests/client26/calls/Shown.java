// SPDX-License-Identifier: Apache-2.0
package rorqual.tests.client26.calls;

import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CacheEvictionStats;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.ClusterStatus;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BalanceResponse;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.LogEntry;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.ipc.CoprocessorRpcChannel;
import org.apache.hadoop.hbase.quotas.QuotaRetriever;
import org.apache.hadoop.hbase.quotas.SpaceQuotaSnapshotView;

/** Outcomes of calls as one line, without parts that differ between runs: times, server names, encoded names. */
final class Shown {
    private Shown() {}

    static String masked(String text) {
        return text.replaceAll("[\\w.-]+[,:]\\d{4,5},\\d{10,}", "SERVER").replaceAll("\\b[0-9a-f]{32}\\b", "ENCODED").replaceAll("\\b1[67]\\d{11}\\b", "MS")
            .replaceAll("(localhost|127\\.0\\.0\\.1)[:/][\\d:.]+", "HOST").replaceAll("pid=\\d+", "pid=N").replaceAll("@[0-9a-f]{5,8}\\b", "@ID")
            .replaceAll("[\\n\\t]+", " ");
    }

    /** Gives both failures of a dead server one text: for two seconds after a failed connection the client does not try again, and
     * reports that instead. */
    private static String unreachable(String failure) {
        return failure.replaceAll("^\\w+: Call to address=HOST failed on (connection|local) exception.*", "no connection to HOST");
    }

    static String of(Method method, Object result) throws Exception {
        return method.getReturnType() == void.class ? "done" : masked(of(result));
    }

    /** The exception's class and the first line of its text; on HBase a stack trace of the server follows. */
    static String failure(Throwable error) {
        String text = String.valueOf(error.getMessage()).lines().findFirst().orElse("");
        return unreachable(masked(error.getClass().getSimpleName() + ": " + text));
    }

    private static String of(Object value) throws Exception {
        if (value == null) {
            return "null";
        }
        if (value instanceof Future<?> future) {
            return ofFuture(future);
        }
        if (value instanceof QuotaRetriever retriever) {
            List<Object> all = new ArrayList<>();
            retriever.forEach(all::add);
            retriever.close();
            return "quotas " + of(all);
        }
        if (value instanceof Map<?, ?> map) {
            List<String> entries = new ArrayList<>();
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                boolean size = entry.getKey() instanceof TableName && entry.getValue() instanceof Long;
                entries.add(of(entry.getKey()) + "=" + (size ? "SIZE" : of(entry.getValue())));
            }
            entries.sort(null);
            return entries.toString();
        }
        if (value instanceof Collection<?> || value.getClass().isArray() && !(value instanceof byte[])) {
            return ofAll(value);
        }
        return ofOne(value);
    }

    private static String ofFuture(Future<?> future) throws Exception {
        try {
            return "future of " + of(future.get(120, TimeUnit.SECONDS));
        } catch (ExecutionException e) {
            return "future of " + failure(e.getCause());
        }
    }

    private static String ofAll(Object value) throws Exception {
        List<String> all = new ArrayList<>();
        Object array = value instanceof Collection<?> collection ? collection.toArray() : value;
        for (int i = 0; i < Array.getLength(array); i++) {
            all.add(of(Array.get(array, i)));
        }
        if (value instanceof Collection<?>) {
            all.sort(null);
        }
        return all.toString();
    }

    private static String ofOne(Object value) {
        if (value instanceof Long number) {
            return number > 1_000_000 ? "large" : number.toString();
        }
        if (value instanceof ServerName) {
            return "SERVER";
        }
        if (value instanceof RegionInfo region) {
            return region.getRegionNameAsString();
        }
        if (value instanceof RegionMetrics metrics) {
            return metrics.getNameAsString() + " " + (metrics.getStoreFileCount() >= 0);
        }
        if (value instanceof SnapshotDescription snapshot) {
            return snapshot.getName() + " of " + snapshot.getTableNameAsString() + " " + snapshot.getType() + " ttl " + snapshot.getTtl();
        }
        if (value instanceof SpaceQuotaSnapshotView view) {
            return "quota " + view.getQuotaStatus() + " limit " + view.getLimit();
        }
        if (value instanceof String text && text.startsWith("[")) {
            return "JSON";
        }
        if (value instanceof Integer port && port > 1000) {
            return "PORT";
        }
        if (value instanceof ClusterStatus || value instanceof ClusterMetrics) {
            ClusterMetrics metrics = (ClusterMetrics) value;
            return "version " + metrics.getHBaseVersion() + " live " + metrics.getLiveServerMetrics().size() + " dead " + metrics.getDeadServerNames()
                + " backups " + metrics.getBackupMasterNames() + " master " + (metrics.getMasterName() != null) + " balancer " + metrics.getBalancerOn()
                + " transition " + metrics.getRegionStatesInTransition() + " coprocessors " + metrics.getMasterCoprocessorNames() + " port "
                + (metrics.getMasterInfoPort() != 0) + " id " + (metrics.getClusterId() != null);
        }
        boolean named = value instanceof Configuration || value instanceof Connection || value instanceof LogEntry || value instanceof CacheEvictionStats
            || value instanceof CoprocessorRpcChannel || value instanceof BalanceResponse;
        return named ? value.getClass().getSimpleName() : value.toString();
    }
}
