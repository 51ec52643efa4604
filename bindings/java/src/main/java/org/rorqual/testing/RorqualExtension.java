// SPDX-License-Identifier: Apache-2.0
package org.rorqual.testing;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * A server for JUnit 5, one for each test class: {@code @ExtendWith(RorqualExtension.class)}. Tests may have parameters of the types
 * RorqualTestingUtility, RorqualServer, Configuration, Connection and Admin.
 */
public class RorqualExtension implements BeforeAllCallback, AfterAllCallback, ParameterResolver {
  private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(RorqualExtension.class);

  @Override
  public void beforeAll(ExtensionContext context) throws IOException {
    RorqualTestingUtility utility = new RorqualTestingUtility();
    utility.startServer();
    context.getStore(NAMESPACE).put(RorqualTestingUtility.class, utility);
  }

  @Override
  public void afterAll(ExtensionContext context) throws IOException {
    RorqualTestingUtility utility = context.getStore(NAMESPACE).remove(RorqualTestingUtility.class, RorqualTestingUtility.class);
    if (utility != null) {
      utility.stopServer();
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    return type == RorqualTestingUtility.class || type == RorqualServer.class || type == Configuration.class
        || type == Connection.class || type == Admin.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    RorqualTestingUtility utility = context.getStore(NAMESPACE).get(RorqualTestingUtility.class, RorqualTestingUtility.class);
    try {
      return type == RorqualTestingUtility.class ? utility : type == RorqualServer.class ? utility.getServer()
          : type == Configuration.class ? utility.getConfiguration() : type == Connection.class ? utility.getConnection()
          : utility.getAdmin();
    } catch (IOException failed) {
      throw new ParameterResolutionException("no connection to the server", failed);
    }
  }
}
