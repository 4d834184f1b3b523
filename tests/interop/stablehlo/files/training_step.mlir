module @jit_training_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x8xf64>, %arg1: tensor<8xf64>, %arg2: tensor<8x3xf64>, %arg3: tensor<3xf64>, %arg4: tensor<5x6xf64>, %arg5: tensor<5xi64>) -> (tensor<f64> {jax.result_info = "result[0]"}, tensor<6x8xf64> {jax.result_info = "result[1][0][0]"}, tensor<8xf64> {jax.result_info = "result[1][0][1]"}, tensor<8x3xf64> {jax.result_info = "result[1][1][0]"}, tensor<3xf64> {jax.result_info = "result[1][1][1]"}) {
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<f64>
    %cst_0 = stablehlo.constant dense<5.000000e+00> : tensor<f64>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0] : (tensor<5x6xf64>, tensor<6x8xf64>) -> tensor<5x8xf64>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<5x8xf64>
    %3 = stablehlo.add %0, %2 : tensor<5x8xf64>
    %4 = stablehlo.tanh %3 : tensor<5x8xf64>
    %5 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<5x8xf64>
    %6 = stablehlo.subtract %5, %4 : tensor<5x8xf64>
    %7 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0] : (tensor<5x8xf64>, tensor<8x3xf64>) -> tensor<5x3xf64>
    %8 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<3xf64>) -> tensor<1x3xf64>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x3xf64>) -> tensor<5x3xf64>
    %10 = stablehlo.add %7, %9 : tensor<5x3xf64>
    %11:3 = call @log_softmax(%10) : (tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<5x3xf64>, tensor<5x1xf64>)
    %12 = stablehlo.broadcast_in_dim %arg5, dims = [0] : (tensor<5xi64>) -> tensor<5x1xi64>
    %13:2 = call @take_along_axis(%11#0, %12) : (tensor<5x3xf64>, tensor<5x1xi64>) -> (tensor<5x1xf64>, tensor<5x1x1xi32>)
    %14 = stablehlo.reduce(%13#0 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x1xf64>, tensor<f64>) -> tensor<f64>
    %15 = stablehlo.divide %14, %cst_0 : tensor<f64>
    %16 = stablehlo.negate %15 : tensor<f64>
    %17 = stablehlo.negate %cst_2 : tensor<f64>
    %18 = stablehlo.divide %17, %cst_0 : tensor<f64>
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f64>) -> tensor<5x1xf64>
    %20 = call @take_along_axis_0(%13#1, %19) : (tensor<5x1x1xi32>, tensor<5x1xf64>) -> tensor<5x3xf64>
    %21 = call @log_softmax_1(%11#1, %11#2, %20) : (tensor<5x3xf64>, tensor<5x1xf64>, tensor<5x3xf64>) -> tensor<5x3xf64>
    %22 = stablehlo.reduce(%21 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<5x3xf64>, tensor<f64>) -> tensor<3xf64>
    %23 = stablehlo.reshape %22 : (tensor<3xf64>) -> tensor<1x3xf64>
    %24 = stablehlo.reduce(%23 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<1x3xf64>, tensor<f64>) -> tensor<3xf64>
    %25 = stablehlo.dot_general %21, %4, contracting_dims = [0] x [0] : (tensor<5x3xf64>, tensor<5x8xf64>) -> tensor<3x8xf64>
    %26 = stablehlo.transpose %25, dims = [1, 0] : (tensor<3x8xf64>) -> tensor<8x3xf64>
    %27 = stablehlo.dot_general %21, %arg2, contracting_dims = [1] x [1] : (tensor<5x3xf64>, tensor<8x3xf64>) -> tensor<5x8xf64>
    %28 = stablehlo.multiply %27, %6 : tensor<5x8xf64>
    %29 = stablehlo.multiply %28, %4 : tensor<5x8xf64>
    %30 = stablehlo.add %28, %29 : tensor<5x8xf64>
    %31 = stablehlo.reduce(%30 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<5x8xf64>, tensor<f64>) -> tensor<8xf64>
    %32 = stablehlo.reshape %31 : (tensor<8xf64>) -> tensor<1x8xf64>
    %33 = stablehlo.reduce(%32 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<1x8xf64>, tensor<f64>) -> tensor<8xf64>
    %34 = stablehlo.dot_general %30, %arg4, contracting_dims = [0] x [0] : (tensor<5x8xf64>, tensor<5x6xf64>) -> tensor<8x6xf64>
    %35 = stablehlo.transpose %34, dims = [1, 0] : (tensor<8x6xf64>) -> tensor<6x8xf64>
    %36 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6x8xf64>
    %37 = stablehlo.multiply %36, %35 : tensor<6x8xf64>
    %38 = stablehlo.subtract %arg0, %37 : tensor<6x8xf64>
    %39 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<8xf64>
    %40 = stablehlo.multiply %39, %33 : tensor<8xf64>
    %41 = stablehlo.subtract %arg1, %40 : tensor<8xf64>
    %42 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<8x3xf64>
    %43 = stablehlo.multiply %42, %26 : tensor<8x3xf64>
    %44 = stablehlo.subtract %arg2, %43 : tensor<8x3xf64>
    %45 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %46 = stablehlo.multiply %45, %24 : tensor<3xf64>
    %47 = stablehlo.subtract %arg3, %46 : tensor<3xf64>
    return %16, %38, %41, %44, %47 : tensor<f64>, tensor<6x8xf64>, tensor<8xf64>, tensor<8x3xf64>, tensor<3xf64>
  }
  func.func private @log_softmax(%arg0: tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<5x3xf64>, tensor<5x1xf64>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<5x3xf64>, tensor<f64>) -> tensor<5xf64>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %2 = stablehlo.maximum %1, %0 : tensor<5xf64>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<5xf64>) -> tensor<5x1xf64>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<5x1xf64>) -> tensor<5x3xf64>
    %5 = stablehlo.subtract %arg0, %4 : tensor<5x3xf64>
    %6 = stablehlo.exponential %5 : tensor<5x3xf64>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf64>, tensor<f64>) -> tensor<5xf64>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<5xf64>) -> tensor<5x1xf64>
    %9 = stablehlo.log %8 : tensor<5x1xf64>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<5x1xf64>) -> tensor<5x3xf64>
    %11 = stablehlo.subtract %5, %10 : tensor<5x3xf64>
    return %11, %6, %8 : tensor<5x3xf64>, tensor<5x3xf64>, tensor<5x1xf64>
  }
  func.func private @take_along_axis(%arg0: tensor<5x3xf64>, %arg1: tensor<5x1xi64>) -> (tensor<5x1xf64>, tensor<5x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<2> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : (tensor<5x1xi64>) -> tensor<5x1xi32>
    %1 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<5x1xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x1xi1>
    %3 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<5x1xi32>
    %4 = stablehlo.add %0, %3 : tensor<5x1xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<5x1xi1>, tensor<5x1xi32>
    %6 = stablehlo.reshape %5 : (tensor<5x1xi32>) -> tensor<5x1x1xi32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<5x1x1xi32>
    %8 = stablehlo.compare GE, %6, %7, SIGNED : (tensor<5x1x1xi32>, tensor<5x1x1xi32>) -> tensor<5x1x1xi1>
    %9 = stablehlo.broadcast_in_dim %c_0, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<5x1x1xi32>
    %11 = stablehlo.compare LE, %6, %10, SIGNED : (tensor<5x1x1xi32>, tensor<5x1x1xi32>) -> tensor<5x1x1xi1>
    %12 = stablehlo.and %8, %11 : tensor<5x1x1xi1>
    %13 = stablehlo.reduce(%12 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<5x1x1xi1>, tensor<i1>) -> tensor<5x1xi1>
    %14 = "stablehlo.gather"(%arg0, %6) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<5x3xf64>, tensor<5x1x1xi32>) -> tensor<5x1xf64>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x1xf64>
    %16 = stablehlo.select %13, %14, %15 : tensor<5x1xi1>, tensor<5x1xf64>
    return %16, %6 : tensor<5x1xf64>, tensor<5x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<5x1x1xi32>, %arg1: tensor<5x1xf64>) -> tensor<5x3xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x3xf64>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f64>, %arg3: tensor<f64>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f64>
      stablehlo.return %2 : tensor<f64>
    }) : (tensor<5x3xf64>, tensor<5x1x1xi32>, tensor<5x1xf64>) -> tensor<5x3xf64>
    return %1 : tensor<5x3xf64>
  }
  func.func private @log_softmax_1(%arg0: tensor<5x3xf64>, %arg1: tensor<5x1xf64>, %arg2: tensor<5x3xf64>) -> tensor<5x3xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.negate %arg2 : tensor<5x3xf64>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<5x3xf64>, tensor<f64>) -> tensor<5xf64>
    %2 = stablehlo.reshape %1 : (tensor<5xf64>) -> tensor<5x1xf64>
    %3 = stablehlo.divide %2, %arg1 : tensor<5x1xf64>
    %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<5x1xf64>, tensor<f64>) -> tensor<5xf64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<5xf64>) -> tensor<5x3xf64>
    %6 = stablehlo.multiply %5, %arg0 : tensor<5x3xf64>
    %7 = stablehlo.add %arg2, %6 : tensor<5x3xf64>
    return %7 : tensor<5x3xf64>
  }
}
