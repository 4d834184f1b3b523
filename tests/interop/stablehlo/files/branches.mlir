module @jit_branches attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf64>, %arg1: tensor<i64>) -> (tensor<4xf64> {jax.result_info = "result[0]"}, tensor<4xf64> {jax.result_info = "result[1]"}, tensor<4xf64> {jax.result_info = "result[2]"}, tensor<4xf64> {jax.result_info = "result[3]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.reduce(%arg0 init: %cst_3) applies stablehlo.add across dimensions = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<f64>
    %1 = stablehlo.compare GT, %0, %cst_3, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %2 = stablehlo.convert %1 : (tensor<i1>) -> tensor<i32>
    %3 = "stablehlo.case"(%2) ({
      %26 = stablehlo.cosine %arg0 : tensor<4xf64>
      stablehlo.return %26 : tensor<4xf64>
    }, {
      %26 = stablehlo.sine %arg0 : tensor<4xf64>
      stablehlo.return %26 : tensor<4xf64>
    }) : (tensor<i32>) -> tensor<4xf64>
    %4 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<i32>
    %5 = stablehlo.clamp %c_2, %4, %c_1 : tensor<i32>
    %6 = "stablehlo.case"(%5) ({
      %26 = stablehlo.sine %arg0 : tensor<4xf64>
      stablehlo.return %26 : tensor<4xf64>
    }, {
      %26 = stablehlo.cosine %arg0 : tensor<4xf64>
      stablehlo.return %26 : tensor<4xf64>
    }, {
      %26 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4xf64>
      %27 = stablehlo.multiply %arg0, %26 : tensor<4xf64>
      stablehlo.return %27 : tensor<4xf64>
    }) : (tensor<i32>) -> tensor<4xf64>
    %7 = stablehlo.add %arg1, %c_0 : tensor<i64>
    %8 = stablehlo.convert %7 : (tensor<i64>) -> tensor<i32>
    %9 = stablehlo.clamp %c_2, %8, %c : tensor<i32>
    %10 = "stablehlo.case"(%9) ({
      %26 = stablehlo.sine %arg0 : tensor<4xf64>
      stablehlo.return %26 : tensor<4xf64>
    }, {
      %26 = stablehlo.cosine %arg0 : tensor<4xf64>
      stablehlo.return %26 : tensor<4xf64>
    }) : (tensor<i32>) -> tensor<4xf64>
    %11 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %12 = stablehlo.compare GT, %arg0, %11, FLOAT : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
    %13 = stablehlo.convert %12 : (tensor<4xi1>) -> tensor<4xi32>
    %14 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %15 = stablehlo.compare EQ, %13, %14, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %16 = stablehlo.select %15, %arg0, %arg0 : tensor<4xi1>, tensor<4xf64>
    %17 = stablehlo.negate %16 : tensor<4xf64>
    %18 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %19 = stablehlo.compare EQ, %13, %18, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %20 = stablehlo.select %19, %arg0, %arg0 : tensor<4xi1>, tensor<4xf64>
    %21 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %22 = stablehlo.multiply %20, %21 : tensor<4xf64>
    %23 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %24 = stablehlo.compare LT, %13, %23, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %25 = stablehlo.select %24, %17, %22 : tensor<4xi1>, tensor<4xf64>
    return %3, %6, %10, %25 : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
  }
}
