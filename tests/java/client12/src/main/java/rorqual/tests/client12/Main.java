package rorqual.tests.client12;
public final class Main { public static void main(String[] a) { } }
