"""Names of the package, loaded at first use: read, not run (``base.lazy.imported_by``)."""

from graphc.nn.functional.activation import (
    celu,
    celu_,
    elu,
    elu_,
    gelu,
    glu,
    gumbel_softmax,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    logsigmoid,
    mish,
    normalize,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    rrelu_,
    selu,
    selu_,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    threshold_,
)
from graphc.nn.functional.affine import bilinear, linear
from graphc.nn.functional.attention import scaled_dot_product_attention
from graphc.nn.functional.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from graphc.nn.functional.distance import cosine_similarity, pairwise_distance, pdist
from graphc.nn.functional.dropouts import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from graphc.nn.functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    gaussian_nll_loss,
    kl_div,
    linear_cross_entropy,
    nll_loss,
)
from graphc.nn.functional.loss_ctc import ctc_loss
from graphc.nn.functional.loss_multilabel import (
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    triplet_margin_with_distance_loss,
)
from graphc.nn.functional.loss_regression import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    huber_loss,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from graphc.nn.functional.multi_head_attention import multi_head_attention_forward
from graphc.nn.functional.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    rms_norm,
)
from graphc.nn.functional.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    lp_pool1d,
    lp_pool2d,
    max_pool1d,
    max_pool2d,
)
from graphc.nn.functional.sampling_grid import affine_grid, grid_sample
from graphc.nn.functional.sparse import embedding, embedding_bag, one_hot
from graphc.nn.functional.unpooling import (
    fractional_max_pool2d,
    fractional_max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from graphc.nn.functional.vision import (
    channel_shuffle,
    fold,
    interpolate,
    pad,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from graphc.nn.functional.volume import (
    adaptive_avg_pool3d,
    adaptive_max_pool3d,
    avg_pool3d,
    conv3d,
    conv_transpose3d,
    lp_pool3d,
    max_pool3d,
)
from graphc.nn.functional.with_indices import (
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d_with_indices,
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d_with_indices,
)
