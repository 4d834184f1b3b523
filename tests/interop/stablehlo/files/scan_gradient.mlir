module @jit_scan_gradient attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x3xf64>) -> (tensor<f64> {jax.result_info = "result[0]"}, tensor<6x3xf64> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<6> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %1 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<6x3xf64>
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<6x3xf64>
    %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<6x3xf64>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<6x3xf64>
    %5:7 = stablehlo.while(%iterArg = %arg0, %iterArg_4 = %c_1, %iterArg_5 = %0, %iterArg_6 = %1, %iterArg_7 = %2, %iterArg_8 = %3, %iterArg_9 = %4) : tensor<6x3xf64>, tensor<i64>, tensor<3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>
    cond {
      %17 = stablehlo.compare LT, %iterArg_4, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %17 : tensor<i1>
    } do {
      %17 = stablehlo.subtract %c_0, %iterArg_4 : tensor<i64>
      %18 = stablehlo.subtract %17, %c : tensor<i64>
      %19 = func.call @dynamic_index_in_dim(%iterArg, %18) : (tensor<6x3xf64>, tensor<i64>) -> tensor<3xf64>
      %20:5 = func.call @closed_call(%iterArg_5, %19) : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
      %21 = func.call @dynamic_update_index_in_dim(%iterArg_6, %20#1, %18) : (tensor<6x3xf64>, tensor<3xf64>, tensor<i64>) -> tensor<6x3xf64>
      %22 = func.call @dynamic_update_index_in_dim(%iterArg_7, %20#2, %18) : (tensor<6x3xf64>, tensor<3xf64>, tensor<i64>) -> tensor<6x3xf64>
      %23 = func.call @dynamic_update_index_in_dim(%iterArg_8, %20#3, %18) : (tensor<6x3xf64>, tensor<3xf64>, tensor<i64>) -> tensor<6x3xf64>
      %24 = func.call @dynamic_update_index_in_dim(%iterArg_9, %20#4, %18) : (tensor<6x3xf64>, tensor<3xf64>, tensor<i64>) -> tensor<6x3xf64>
      %25 = stablehlo.add %iterArg_4, %c : tensor<i64>
      stablehlo.return %iterArg, %25, %20#0, %21, %22, %23, %24 : tensor<6x3xf64>, tensor<i64>, tensor<3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>
    }
    %6 = stablehlo.reduce(%5#2 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<3xf64>, tensor<f64>) -> tensor<f64>
    %7 = stablehlo.multiply %5#3, %5#3 : tensor<6x3xf64>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6x3xf64>
    %9 = stablehlo.multiply %8, %5#3 : tensor<6x3xf64>
    %10 = stablehlo.reduce(%7 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x3xf64>, tensor<f64>) -> tensor<f64>
    %11 = stablehlo.add %6, %10 : tensor<f64>
    %12 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<6x3xf64>
    %13 = stablehlo.multiply %12, %9 : tensor<6x3xf64>
    %14 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %15 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<6x3xf64>
    %16:8 = stablehlo.while(%iterArg = %13, %iterArg_4 = %5#4, %iterArg_5 = %5#5, %iterArg_6 = %arg0, %iterArg_7 = %5#6, %iterArg_8 = %c_1, %iterArg_9 = %14, %iterArg_10 = %15) : tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<i64>, tensor<3xf64>, tensor<6x3xf64>
    cond {
      %17 = stablehlo.compare LT, %iterArg_8, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %17 : tensor<i1>
    } do {
      %17 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_8) : (tensor<6x3xf64>, tensor<i64>) -> tensor<3xf64>
      %18 = func.call @dynamic_index_in_dim(%iterArg_4, %iterArg_8) : (tensor<6x3xf64>, tensor<i64>) -> tensor<3xf64>
      %19 = func.call @dynamic_index_in_dim(%iterArg_5, %iterArg_8) : (tensor<6x3xf64>, tensor<i64>) -> tensor<3xf64>
      %20 = func.call @dynamic_index_in_dim(%iterArg_6, %iterArg_8) : (tensor<6x3xf64>, tensor<i64>) -> tensor<3xf64>
      %21 = func.call @dynamic_index_in_dim(%iterArg_7, %iterArg_8) : (tensor<6x3xf64>, tensor<i64>) -> tensor<3xf64>
      %22:2 = func.call @closed_call_0(%iterArg_9, %17, %18, %19, %20, %21) : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
      %23 = func.call @dynamic_update_index_in_dim(%iterArg_10, %22#1, %iterArg_8) : (tensor<6x3xf64>, tensor<3xf64>, tensor<i64>) -> tensor<6x3xf64>
      %24 = stablehlo.add %iterArg_8, %c : tensor<i64>
      stablehlo.return %iterArg, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %24, %22#0, %23 : tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<6x3xf64>, tensor<i64>, tensor<3xf64>, tensor<6x3xf64>
    }
    return %11, %16#7 : tensor<f64>, tensor<6x3xf64>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x3xf64>, %arg1: tensor<i64>) -> tensor<3xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] : (tensor<6x3xf64>, tensor<i64>, tensor<i64>) -> tensor<1x3xf64>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf64>) -> tensor<3xf64>
    return %1 : tensor<3xf64>
  }
  func.func private @closed_call(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = stablehlo.add %arg0, %arg1 : tensor<3xf64>
    %1 = stablehlo.tanh %0 : tensor<3xf64>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %3 = stablehlo.subtract %2, %1 : tensor<3xf64>
    %4 = stablehlo.multiply %arg0, %arg1 : tensor<3xf64>
    return %1, %4, %1, %3, %arg0 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<6x3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<i64>) -> tensor<6x3xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf64>) -> tensor<1x3xf64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<6x3xf64>, tensor<1x3xf64>, tensor<i64>, tensor<i64>) -> tensor<6x3xf64>
    return %1 : tensor<6x3xf64>
  }
  func.func private @closed_call_0(%arg0: tensor<3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>, %arg3: tensor<3xf64>, %arg4: tensor<3xf64>, %arg5: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
    %0 = stablehlo.multiply %arg5, %arg1 : tensor<3xf64>
    %1 = stablehlo.multiply %arg1, %arg4 : tensor<3xf64>
    %2 = stablehlo.multiply %arg0, %arg3 : tensor<3xf64>
    %3 = stablehlo.multiply %2, %arg2 : tensor<3xf64>
    %4 = stablehlo.add %2, %3 : tensor<3xf64>
    %5 = stablehlo.add %1, %4 : tensor<3xf64>
    %6 = stablehlo.add %0, %4 : tensor<3xf64>
    return %5, %6 : tensor<3xf64>, tensor<3xf64>
  }
}
