"""What tests of the site share: small losses are traced sooner, as in the library's own tests."""

from tests.lerh_tf.conftest import built_optimizers, plain_loops

__all__ = ["built_optimizers", "plain_loops"]
