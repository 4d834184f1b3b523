module @jit_dynamic_slices attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<7x5xf64>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> (tensor<3x2xf64> {jax.result_info = "result[0]"}, tensor<1x5xf64> {jax.result_info = "result[1]"}, tensor<7x5xf64> {jax.result_info = "result[2]"}, tensor<7x5xf64> {jax.result_info = "result[3]"}, tensor<7x5xf64> {jax.result_info = "result[4]"}, tensor<f64> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %c_0 = stablehlo.constant dense<7> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<8> : tensor<i64>
    %c_3 = stablehlo.constant dense<2> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %c_4 = stablehlo.constant dense<5> : tensor<i64>
    %c_5 = stablehlo.constant dense<7> : tensor<i64>
    %c_6 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.compare LT, %arg1, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %1 = stablehlo.add %arg1, %c_5 : tensor<i64>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<i1>, tensor<i64>
    %3 = stablehlo.compare LT, %arg2, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %4 = stablehlo.add %arg2, %c_4 : tensor<i64>
    %5 = stablehlo.select %3, %4, %arg2 : tensor<i1>, tensor<i64>
    %6 = stablehlo.dynamic_slice %arg0, %2, %5, sizes = [3, 2] : (tensor<7x5xf64>, tensor<i64>, tensor<i64>) -> tensor<3x2xf64>
    %7 = call @dynamic_index_in_dim(%arg0, %arg2) : (tensor<7x5xf64>, tensor<i64>) -> tensor<1x5xf64>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x2xf64>
    %9 = stablehlo.multiply %6, %8 : tensor<3x2xf64>
    %10 = stablehlo.compare LT, %arg1, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %11 = stablehlo.add %arg1, %c_5 : tensor<i64>
    %12 = stablehlo.select %10, %11, %arg1 : tensor<i1>, tensor<i64>
    %13 = stablehlo.compare LT, %arg2, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %14 = stablehlo.add %arg2, %c_4 : tensor<i64>
    %15 = stablehlo.select %13, %14, %arg2 : tensor<i1>, tensor<i64>
    %16 = stablehlo.dynamic_update_slice %arg0, %9, %12, %15 : (tensor<7x5xf64>, tensor<3x2xf64>, tensor<i64>, tensor<i64>) -> tensor<7x5xf64>
    %17 = stablehlo.slice %arg0 [0:1, 0:5] : (tensor<7x5xf64>) -> tensor<1x5xf64>
    %18 = stablehlo.reshape %17 : (tensor<1x5xf64>) -> tensor<5xf64>
    %19 = call @dynamic_update_index_in_dim(%arg0, %18, %arg1) : (tensor<7x5xf64>, tensor<5xf64>, tensor<i64>) -> tensor<7x5xf64>
    %20 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %21 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %22 = "stablehlo.scatter"(%arg0, %20, %21) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<f64>, %arg4: tensor<f64>):
      stablehlo.return %arg4 : tensor<f64>
    }) : (tensor<7x5xf64>, tensor<1xi32>, tensor<5xf64>) -> tensor<7x5xf64>
    %23 = stablehlo.subtract %arg1, %c_2 : tensor<i64>
    %24 = stablehlo.convert %23 : (tensor<i64>) -> tensor<i32>
    %25 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<i32>
    %26 = stablehlo.compare LT, %24, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %27 = stablehlo.add %24, %c_0 : tensor<i32>
    %28 = stablehlo.select %26, %27, %24 : tensor<i1>, tensor<i32>
    %29 = stablehlo.compare LT, %25, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %30 = stablehlo.add %25, %c : tensor<i32>
    %31 = stablehlo.select %29, %30, %25 : tensor<i1>, tensor<i32>
    %32 = stablehlo.dynamic_slice %arg0, %28, %31, sizes = [1, 1] : (tensor<7x5xf64>, tensor<i32>, tensor<i32>) -> tensor<1x1xf64>
    %33 = stablehlo.reshape %32 : (tensor<1x1xf64>) -> tensor<f64>
    return %6, %7, %16, %19, %22, %33 : tensor<3x2xf64>, tensor<1x5xf64>, tensor<7x5xf64>, tensor<7x5xf64>, tensor<7x5xf64>, tensor<f64>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<7x5xf64>, %arg1: tensor<i64>) -> tensor<1x5xf64> {
    %c = stablehlo.constant dense<7> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.compare LT, %arg1, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %1 = stablehlo.add %arg1, %c : tensor<i64>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<i1>, tensor<i64>
    %3 = stablehlo.dynamic_slice %arg0, %2, %c_0, sizes = [1, 5] : (tensor<7x5xf64>, tensor<i64>, tensor<i64>) -> tensor<1x5xf64>
    return %3 : tensor<1x5xf64>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<7x5xf64>, %arg1: tensor<5xf64>, %arg2: tensor<i64>) -> tensor<7x5xf64> {
    %c = stablehlo.constant dense<7> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<5xf64>) -> tensor<1x5xf64>
    %1 = stablehlo.compare LT, %arg2, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %2 = stablehlo.add %arg2, %c : tensor<i64>
    %3 = stablehlo.select %1, %2, %arg2 : tensor<i1>, tensor<i64>
    %4 = stablehlo.dynamic_update_slice %arg0, %0, %3, %c_0 : (tensor<7x5xf64>, tensor<1x5xf64>, tensor<i64>, tensor<i64>) -> tensor<7x5xf64>
    return %4 : tensor<7x5xf64>
  }
}
