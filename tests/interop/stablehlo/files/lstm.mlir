module @jit_lstm attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x3xf64>, %arg1: tensor<12xf64>, %arg2: tensor<3x12xf64>, %arg3: tensor<3x12xf64>) -> (tensor<3xf64> {jax.result_info = "result[0][0]"}, tensor<3xf64> {jax.result_info = "result[0][1]"}, tensor<5x3xf64> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x3xf64>
    %3:8 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %arg3, %iterArg_3 = %arg2, %iterArg_4 = %arg1, %iterArg_5 = %c_1, %iterArg_6 = %0, %iterArg_7 = %1, %iterArg_8 = %2) : tensor<5x3xf64>, tensor<3x12xf64>, tensor<3x12xf64>, tensor<12xf64>, tensor<i64>, tensor<3xf64>, tensor<3xf64>, tensor<5x3xf64>
    cond {
      %4 = stablehlo.compare LT, %iterArg_5, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_5) : (tensor<5x3xf64>, tensor<i64>) -> tensor<3xf64>
      %5:3 = func.call @closed_call(%iterArg_2, %iterArg_3, %iterArg_4, %iterArg_6, %iterArg_7, %4) : (tensor<3x12xf64>, tensor<3x12xf64>, tensor<12xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
      %6 = func.call @dynamic_update_index_in_dim(%iterArg_8, %5#2, %iterArg_5) : (tensor<5x3xf64>, tensor<3xf64>, tensor<i64>) -> tensor<5x3xf64>
      %7 = stablehlo.add %iterArg_5, %c : tensor<i64>
      stablehlo.return %iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %7, %5#0, %5#1, %6 : tensor<5x3xf64>, tensor<3x12xf64>, tensor<3x12xf64>, tensor<12xf64>, tensor<i64>, tensor<3xf64>, tensor<3xf64>, tensor<5x3xf64>
    }
    return %3#5, %3#6, %3#7 : tensor<3xf64>, tensor<3xf64>, tensor<5x3xf64>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<5x3xf64>, %arg1: tensor<i64>) -> tensor<3xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] : (tensor<5x3xf64>, tensor<i64>, tensor<i64>) -> tensor<1x3xf64>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf64>) -> tensor<3xf64>
    return %1 : tensor<3xf64>
  }
  func.func private @closed_call(%arg0: tensor<3x12xf64>, %arg1: tensor<3x12xf64>, %arg2: tensor<12xf64>, %arg3: tensor<3xf64>, %arg4: tensor<3xf64>, %arg5: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = stablehlo.dot_general %arg5, %arg0, contracting_dims = [0] x [0] : (tensor<3xf64>, tensor<3x12xf64>) -> tensor<12xf64>
    %1 = stablehlo.dot_general %arg3, %arg1, contracting_dims = [0] x [0] : (tensor<3xf64>, tensor<3x12xf64>) -> tensor<12xf64>
    %2 = stablehlo.add %0, %1 : tensor<12xf64>
    %3 = stablehlo.add %2, %arg2 : tensor<12xf64>
    %4 = stablehlo.slice %3 [0:3] : (tensor<12xf64>) -> tensor<3xf64>
    %5 = stablehlo.slice %3 [3:6] : (tensor<12xf64>) -> tensor<3xf64>
    %6 = stablehlo.slice %3 [6:9] : (tensor<12xf64>) -> tensor<3xf64>
    %7 = stablehlo.slice %3 [9:12] : (tensor<12xf64>) -> tensor<3xf64>
    %8 = stablehlo.negate %5 : tensor<3xf64>
    %9 = stablehlo.exponential %8 : tensor<3xf64>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %11 = stablehlo.add %10, %9 : tensor<3xf64>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %13 = stablehlo.divide %12, %11 : tensor<3xf64>
    %14 = stablehlo.multiply %13, %arg4 : tensor<3xf64>
    %15 = stablehlo.negate %4 : tensor<3xf64>
    %16 = stablehlo.exponential %15 : tensor<3xf64>
    %17 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %18 = stablehlo.add %17, %16 : tensor<3xf64>
    %19 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %20 = stablehlo.divide %19, %18 : tensor<3xf64>
    %21 = stablehlo.tanh %6 : tensor<3xf64>
    %22 = stablehlo.multiply %20, %21 : tensor<3xf64>
    %23 = stablehlo.add %14, %22 : tensor<3xf64>
    %24 = stablehlo.negate %7 : tensor<3xf64>
    %25 = stablehlo.exponential %24 : tensor<3xf64>
    %26 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %27 = stablehlo.add %26, %25 : tensor<3xf64>
    %28 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %29 = stablehlo.divide %28, %27 : tensor<3xf64>
    %30 = stablehlo.tanh %23 : tensor<3xf64>
    %31 = stablehlo.multiply %29, %30 : tensor<3xf64>
    return %31, %23, %31 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<5x3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<i64>) -> tensor<5x3xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf64>) -> tensor<1x3xf64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<5x3xf64>, tensor<1x3xf64>, tensor<i64>, tensor<i64>) -> tensor<5x3xf64>
    return %1 : tensor<5x3xf64>
  }
}
