module @jit_largest attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x9xf64>) -> (tensor<3x4xf64> {jax.result_info = "result[0][0]"}, tensor<3x4xi32> {jax.result_info = "result[0][1]"}, tensor<3xi64> {jax.result_info = "result[1]"}, tensor<9xi64> {jax.result_info = "result[2]"}, tensor<2xf64> {jax.result_info = "result[3][0]"}, tensor<2xi32> {jax.result_info = "result[3][1]"}, tensor<i64> {jax.result_info = "result[4]"}) {
    %c = stablehlo.constant dense<3> : tensor<i64>
    %0:2 = stablehlo.composite "chlo.top_k" %arg0 {composite_attributes = {k = 4 : i64}, decomposition = @chlo.top_k.impl, version = 1 : i32} : (tensor<3x9xf64>) -> (tensor<3x4xf64>, tensor<3x4xi32>)
    %1 = call @argmax(%arg0) : (tensor<3x9xf64>) -> tensor<3xi64>
    %2 = call @argmin(%arg0) : (tensor<3x9xf64>) -> tensor<9xi64>
    %3 = stablehlo.slice %arg0 [0:1, 0:9] : (tensor<3x9xf64>) -> tensor<1x9xf64>
    %4 = stablehlo.reshape %3 : (tensor<1x9xf64>) -> tensor<9xf64>
    %5:2 = stablehlo.composite "chlo.top_k" %4 {composite_attributes = {k = 2 : i64}, decomposition = @chlo.top_k.impl_0, version = 1 : i32} : (tensor<9xf64>) -> (tensor<2xf64>, tensor<2xi32>)
    return %0#0, %0#1, %1, %2, %5#0, %5#1, %c : tensor<3x4xf64>, tensor<3x4xi32>, tensor<3xi64>, tensor<9xi64>, tensor<2xf64>, tensor<2xi32>, tensor<i64>
  }
  func.func private @chlo.top_k.impl_0(%arg0: tensor<9xf64>) -> (tensor<2xf64>, tensor<2xi32>) {
    %0 = stablehlo.iota dim = 0 : tensor<9xi32>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %4 = stablehlo.compare GT, %arg1, %arg2, TOTALORDER : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }) : (tensor<9xf64>, tensor<9xi32>) -> (tensor<9xf64>, tensor<9xi32>)
    %2 = stablehlo.slice %1#0 [0:2] : (tensor<9xf64>) -> tensor<2xf64>
    %3 = stablehlo.slice %1#1 [0:2] : (tensor<9xi32>) -> tensor<2xi32>
    return %2, %3 : tensor<2xf64>, tensor<2xi32>
  }
  func.func private @chlo.top_k.impl(%arg0: tensor<3x9xf64>) -> (tensor<3x4xf64>, tensor<3x4xi32>) {
    %0 = stablehlo.iota dim = 1 : tensor<3x9xi32>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %4 = stablehlo.compare GT, %arg1, %arg2, TOTALORDER : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }) : (tensor<3x9xf64>, tensor<3x9xi32>) -> (tensor<3x9xf64>, tensor<3x9xi32>)
    %2 = stablehlo.slice %1#0 [0:3, 0:4] : (tensor<3x9xf64>) -> tensor<3x4xf64>
    %3 = stablehlo.slice %1#1 [0:3, 0:4] : (tensor<3x9xi32>) -> tensor<3x4xi32>
    return %2, %3 : tensor<3x4xf64>, tensor<3x4xi32>
  }
  func.func private @argmax(%arg0: tensor<3x9xf64>) -> tensor<3xi64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.iota dim = 1 : tensor<3x9xi64>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<3x9xf64>, tensor<3x9xi64>, tensor<f64>, tensor<i64>) -> (tensor<3xf64>, tensor<3xi64>)
     reducer(%arg1: tensor<f64>, %arg3: tensor<f64>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f64>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<f64>, tensor<i64>
    }
    return %1#1 : tensor<3xi64>
  }
  func.func private @argmin(%arg0: tensor<3x9xf64>) -> tensor<9xi64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
    %0 = stablehlo.iota dim = 0 : tensor<3x9xi64>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<3x9xf64>, tensor<3x9xi64>, tensor<f64>, tensor<i64>) -> (tensor<9xf64>, tensor<9xi64>)
     reducer(%arg1: tensor<f64>, %arg3: tensor<f64>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare LT, %arg1, %arg3, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f64>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<f64>, tensor<i64>
    }
    return %1#1 : tensor<9xi64>
  }
}
