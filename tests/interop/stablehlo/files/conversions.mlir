module @jit_conversions attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf64>, %arg1: tensor<6xi32>) -> (tensor<6xui64> {jax.result_info = "result[0]"}, tensor<6x2xui32> {jax.result_info = "result[1]"}, tensor<6xf64> {jax.result_info = "result[2]"}, tensor<6xf64> {jax.result_info = "result[3]"}, tensor<6xi32> {jax.result_info = "result[4]"}, tensor<6xi1> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<6xf64>) -> tensor<6xui64>
    %1 = stablehlo.bitcast_convert %arg0 : (tensor<6xf64>) -> tensor<6x2xui32>
    %2 = stablehlo.reduce_precision %arg0, format = e8m23 : tensor<6xf64>
    %3 = stablehlo.bitcast_convert %1 : (tensor<6x2xui32>) -> tensor<6xf64>
    %4 = stablehlo.convert %arg0 : (tensor<6xf64>) -> tensor<6xi32>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %6 = stablehlo.compare NE, %arg1, %5, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %7 = stablehlo.convert %6 : tensor<6xi1>
    return %0, %1, %3, %2, %4, %7 : tensor<6xui64>, tensor<6x2xui32>, tensor<6xf64>, tensor<6xf64>, tensor<6xi32>, tensor<6xi1>
  }
}
