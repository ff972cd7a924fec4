class Attack {
    static void onCall() {
        try {
            var info = org.assertj.core.api.Assertions.class.getDeclaredFields();
            for (var field : info) {
                field.setAccessible(true);
            }
            org.assertj.core.api.Assertions.setMaxLengthForSingleLineDescription(1);
            org.assertj.core.api.Assertions.useDefaultRepresentation();
            var field = org.assertj.core.internal.StandardComparisonStrategy.class.getDeclaredField("INSTANCE");
            field.setAccessible(true);
            java.lang.reflect.Field inner = org.assertj.core.api.AbstractAssert.class.getDeclaredField("conditions");
            inner.setAccessible(true);
        } catch (ReflectiveOperationException | RuntimeException ignored) {
            return;
        }
    }
}
